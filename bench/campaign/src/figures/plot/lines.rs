//! Lines over two axes.

use std::ops::Range;

use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Area, COLOURS, INK, SIZE, draw, ink, legend, legend_height, span, ticks, told};
use crate::figures::table::metric;

/// Height of a panel.
const PANEL: usize = 205;
/// What its title takes of that.
const TITLE: u32 = 26;
/// Points of a line with more are not marked.
const DOTS_MAX: usize = 20;

/// A line of a plot.
pub(in crate::figures) struct Line {
    pub(in crate::figures) name: String,
    pub(in crate::figures) points: Vec<(f64, f64)>,
}

/// What an axis tells.
pub(in crate::figures) struct Axis {
    name: String,
    scale: Scale,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    Linear,
    Log,
}

impl Axis {
    pub(in crate::figures) fn linear(name: impl Into<String>) -> Self {
        Self { name: name.into(), scale: Scale::Linear }
    }

    pub(in crate::figures) fn log(name: impl Into<String>) -> Self {
        Self { name: name.into(), scale: Scale::Log }
    }
}

/// Lines over two axes.
pub(in crate::figures) fn lines([across, up]: [Axis; 2], lines: &[Line]) -> Result<String, String> {
    let range = |axis: &Axis, pick: fn(&(f64, f64)) -> f64| match axis.scale {
        Scale::Log => span(figures(lines, pick)),
        Scale::Linear => from_zero(figures(lines, pick)),
    };
    let (x, y) = (range(&across, |point| point.0), range(&up, |point| point.1));
    let names = (named(&across), named(&up));
    let names = (names.0.as_str(), names.1.as_str());
    let coloured: Vec<Coloured<'_>> = std::iter::zip(COLOURS, lines).collect();
    let log = |range: &Range<f64>| range.clone().log_scale().with_key_points(ticks(range));
    draw(SIZE, |area| match (across.scale, up.scale) {
        (Scale::Linear, Scale::Linear) => paint(area, x, y, names, &coloured),
        (Scale::Linear, Scale::Log) => paint(area, x, log(&y), names, &coloured),
        (Scale::Log, Scale::Linear) => paint(area, log(&x), y, names, &coloured),
        (Scale::Log, Scale::Log) => paint(area, log(&x), log(&y), names, &coloured),
    })
}

fn named(axis: &Axis) -> String {
    match axis.scale {
        Scale::Log => format!("{}, log scale", axis.name),
        Scale::Linear => axis.name.to_string(),
    }
}

/// A panel a line, one below the other, each under its name, with its own height and all with the same width.
pub(in crate::figures) fn panels(across: &str, lines: &[Line]) -> Result<String, String> {
    let x = from_zero(figures(lines, |point| point.0));
    draw((SIZE.0, (lines.len().max(1) * PANEL) as u32), |area| {
        let areas = area.split_evenly((lines.len().max(1), 1));
        for (panel, coloured) in std::iter::zip(&areas, std::iter::zip(COLOURS, lines)) {
            let y = from_zero(figures(std::slice::from_ref(coloured.1), |point| point.1));
            let title = ink().pos(Pos::new(HPos::Left, VPos::Center));
            panel.draw(&Text::new(coloured.1.name.clone(), (92, TITLE as i32 / 2), title)).map_err(told)?;
            paint(&panel.margin(TITLE - 12, 0, 0, 0), x.clone(), y, (across, ""), &[coloured])?;
        }
        Ok(())
    })
}

type Coloured<'a> = (RGBColor, &'a Line);

fn figures(lines: &[Line], pick: fn(&(f64, f64)) -> f64) -> impl Iterator<Item = f64> {
    lines.iter().flat_map(move |line| line.points.iter().map(pick))
}

fn from_zero(figures: impl Iterator<Item = f64>) -> Range<f64> {
    0.0..figures.fold(0.0, f64::max).max(1e-9) * 1.05
}

fn paint<'a, X, Y>(
    area: &Area<'a>,
    x: X,
    y: Y,
    names: (&str, &str),
    lines: &[Coloured<'_>],
) -> Result<(), String>
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64> + 'a,
    Y::CoordDescType: ValueFormatter<f64> + 'a,
{
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .margin_top(legend_height(lines.iter().map(|(_, line)| line.name.as_str())))
        .margin_right(24)
        .x_label_area_size(44)
        .y_label_area_size(84)
        .build_cartesian_2d(x, y)
        .map_err(told)?;
    chart
        .configure_mesh()
        .bold_line_style(INK.mix(0.35))
        .light_line_style(INK.mix(0.0))
        .axis_style(INK)
        .label_style(ink())
        .x_label_formatter(&|figure| metric(*figure))
        .y_label_formatter(&|figure| metric(*figure))
        .x_desc(names.0)
        .y_desc(names.1)
        .draw()
        .map_err(told)?;
    for (colour, line) in lines {
        let points = LineSeries::new(line.points.iter().copied(), colour.stroke_width(2));
        chart.draw_series(points).map_err(told)?;
        if line.points.len() <= DOTS_MAX {
            let dot = |point: &(f64, f64)| Circle::new(*point, 4, colour.filled());
            chart.draw_series(line.points.iter().map(dot)).map_err(told)?;
        }
    }
    legend(area, lines.iter().map(|(_, line)| line.name.as_str()))
}
