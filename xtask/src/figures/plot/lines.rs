//! Lines over two axes.

use std::ops::Range;

use plotters::coord::combinators::IntoLogRange;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use super::{Area, COLOURS, INK, SIZE, decades, draw, ink, legend, told};
use crate::figures::table::metric;

/// A line of a plot.
pub(in crate::figures) struct Line {
    pub(in crate::figures) name: String,
    pub(in crate::figures) points: Vec<(f64, f64)>,
}

/// What an axis tells.
pub(in crate::figures) struct Axis {
    name: &'static str,
    scale: Scale,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    Linear,
    Log,
}

impl Axis {
    pub(in crate::figures) fn linear(name: &'static str) -> Self {
        Self { name, scale: Scale::Linear }
    }

    pub(in crate::figures) fn log(name: &'static str) -> Self {
        Self { name, scale: Scale::Log }
    }
}

/// Lines over two axes.
pub(in crate::figures) fn lines([across, up]: [Axis; 2], lines: &[Line]) -> Result<String, String> {
    let figures =
        |pick: fn(&(f64, f64)) -> f64| lines.iter().flat_map(move |line| line.points.iter().map(pick));
    let range = |axis: &Axis, pick: fn(&(f64, f64)) -> f64| -> Range<f64> {
        match axis.scale {
            Scale::Log => decades(figures(pick)),
            Scale::Linear => 0.0..figures(pick).fold(0.0f64, f64::max).max(1e-9) * 1.05,
        }
    };
    let (width, height) = (range(&across, |point| point.0), range(&up, |point| point.1));
    let names = (across.name, up.name);
    draw(SIZE, |area| match (across.scale, up.scale) {
        (Scale::Linear, Scale::Linear) => paint(area, width, height, names, lines),
        (Scale::Linear, Scale::Log) => paint(area, width, height.log_scale(), names, lines),
        (Scale::Log, Scale::Linear) => paint(area, width.log_scale(), height, names, lines),
        (Scale::Log, Scale::Log) => paint(area, width.log_scale(), height.log_scale(), names, lines),
    })
}

fn paint<'a, X, Y>(area: &Area<'a>, x: X, y: Y, names: (&str, &str), lines: &[Line]) -> Result<(), String>
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64> + 'a,
    Y::CoordDescType: ValueFormatter<f64> + 'a,
{
    let mut chart = ChartBuilder::on(area)
        .margin(8)
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
    for (index, line) in lines.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let points = LineSeries::new(line.points.iter().copied(), colour.stroke_width(2));
        let series = chart.draw_series(points).map_err(told)?;
        if lines.len() > 1 {
            series
                .label(&line.name)
                .legend(move |(x, y)| Rectangle::new([(x, y - 2), (x + 12, y + 2)], colour.filled()));
        }
        if line.points.len() <= 20 {
            let dot = |point: &(f64, f64)| Circle::new(*point, 4, colour.filled());
            chart.draw_series(line.points.iter().map(dot)).map_err(told)?;
        }
    }
    legend(&mut chart, lines.len())
}
