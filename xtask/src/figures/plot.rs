//! Plots as SVG, of colours that are read on white and on black: the ground is left out.

use plotters::coord::Shift;
use plotters::coord::combinators::IntoLogRange;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::table::{metric, short};

const SIZE: (u32, u32) = (860, 420);
/// Words and axes.
const INK: RGBColor = RGBColor(128, 128, 128);
const FONT: (&str, u32) = ("sans-serif", 14);
/// Forebay's first; each is told from its neighbours by brightness too.
const COLOURS: [RGBColor; 7] = [
    RGBColor(232, 89, 12),
    RGBColor(60, 130, 230),
    RGBColor(20, 160, 150),
    RGBColor(160, 90, 210),
    RGBColor(130, 150, 30),
    RGBColor(210, 70, 130),
    RGBColor(140, 120, 100),
];

/// A line of a plot.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// What an axis tells.
pub(super) struct Axis {
    name: &'static str,
    scale: Scale,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    Linear,
    Log,
}

impl Axis {
    pub(super) fn linear(name: &'static str) -> Self {
        Self { name, scale: Scale::Linear }
    }

    pub(super) fn log(name: &'static str) -> Self {
        Self { name, scale: Scale::Log }
    }
}

/// A table whose cells are coloured by their numbers.
pub(super) struct Heat {
    pub(super) title: &'static str,
    /// What rows are, and their names from the bottom up.
    pub(super) rows: (&'static str, Vec<String>),
    pub(super) columns: (&'static str, Vec<String>),
    pub(super) values: Vec<Vec<Option<f64>>>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw(size: (u32, u32), paint: impl FnOnce(&Area<'_>) -> Result<(), String>) -> Result<String, String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        paint(&area)?;
        area.present().map_err(told)?;
    }
    Ok(svg)
}

fn told(error: impl std::fmt::Display) -> String {
    format!("cannot draw: {error}")
}

fn ink() -> TextStyle<'static> {
    FONT.into_font().color(&INK)
}

/// The powers of ten around all figures above 0, and at least one of them.
fn decades(figures: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (low, high) = figures
        .filter(|figure| *figure > 0.0)
        .fold((f64::INFINITY, 0.0f64), |(low, high), figure| (low.min(figure), high.max(figure)));
    if low > high {
        return 1.0..10.0;
    }
    let (low, high) = (low.log10().floor(), high.log10().ceil());
    10f64.powf(low)..10f64.powf(high.max(low + 1.0))
}

/// Groups of bars, from the top a group each, on a logarithmic axis.
pub(super) fn bars(
    name: &str,
    groups: &[&str],
    series: &[(String, Vec<Option<f64>>)],
) -> Result<String, String> {
    let drawn: Vec<_> =
        series.iter().filter(|(_, values)| values.iter().flatten().next().is_some()).collect();
    let range = decades(drawn.iter().flat_map(|(_, values)| values.iter().flatten().copied()));
    let floor = range.start;
    let slots = drawn.len().max(1) as f64 + 1.0;
    let height = (groups.len() as f64 * slots * 15.0) as u32 + 110;
    draw((SIZE.0, height), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .margin_right(70)
            .x_label_area_size(44)
            .y_label_area_size(190)
            .build_cartesian_2d(range.log_scale(), 0f64..groups.len() as f64)
            .map_err(told)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .bold_line_style(INK.mix(0.35))
            .light_line_style(INK.mix(0.12))
            .axis_style(INK)
            .label_style(ink())
            .x_label_formatter(&|figure| metric(*figure))
            .x_desc(name)
            .draw()
            .map_err(told)?;
        let beside = ink().pos(Pos::new(HPos::Left, VPos::Center));
        for (index, (name, values)) in drawn.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let place =
                |group: usize, part: f64| (groups.len() - group) as f64 - (index as f64 + 0.5 + part) / slots;
            let measured = || values.iter().enumerate().filter_map(|(group, value)| Some((group, (*value)?)));
            let bar = |(group, value): (usize, f64)| {
                Rectangle::new([(floor, place(group, 0.06)), (value, place(group, 0.94))], colour.filled())
            };
            let series = chart.draw_series(measured().map(bar)).map_err(told)?;
            if drawn.len() > 1 {
                series
                    .label(name)
                    .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled()));
            }
            let number = |(group, value)| {
                EmptyElement::at((value, place(group, 0.5)))
                    + Text::new(metric(value), (4, 0), beside.clone())
            };
            chart.draw_series(measured().map(number)).map_err(told)?;
        }
        let before = ink().pos(Pos::new(HPos::Right, VPos::Center));
        let name = |(group, name): (usize, &&str)| {
            EmptyElement::at((floor, (groups.len() - group) as f64 - 0.5))
                + Text::new(name.to_string(), (-8, 0), before.clone())
        };
        chart.draw_series(groups.iter().enumerate().map(name)).map_err(told)?;
        legend(&mut chart, drawn.len())
    })
}

/// Lines over two axes.
pub(super) fn lines([across, up]: [Axis; 2], lines: &[Line]) -> Result<String, String> {
    let figures =
        |pick: fn(&(f64, f64)) -> f64| lines.iter().flat_map(move |line| line.points.iter().map(pick));
    let range = |axis: &Axis, pick| match axis.scale {
        Scale::Log => decades(figures(pick)),
        Scale::Linear => 0.0..figures(pick).fold(0.0f64, f64::max).max(1e-9) * 1.05,
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

/// Names of colours; none where there is one.
fn legend<'a, X, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    entries: usize,
) -> Result<(), String>
where
    X: Ranged<ValueType = f64> + 'a,
    Y: Ranged<ValueType = f64> + 'a,
{
    if entries < 2 {
        return Ok(());
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .label_font(ink())
        .border_style(INK.mix(0.35))
        .draw()
        .map_err(told)
}

/// Cells with their numbers, from pale for the least to dark for the most.
pub(super) fn heat(heat: &Heat) -> Result<String, String> {
    const LEFT: i32 = 110;
    const TOP: i32 = 34;
    const CELL: (i32, i32) = (96, 44);
    let (rows, columns) = (&heat.rows.1, &heat.columns.1);
    let (height, width) = (CELL.1 * rows.len() as i32, CELL.0 * columns.len() as i32);
    let known = || heat.values.iter().flatten().flatten().copied();
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    draw(((LEFT + width + 12) as u32, (TOP + height + 54) as u32), |area| {
        let text = |words: &str, x: i32, y: i32, style: &TextStyle<'_>| {
            area.draw(&Text::new(words.to_string(), (x, y), style.clone())).map_err(told)
        };
        let centred = ink().pos(Pos::new(HPos::Center, VPos::Center));
        let right = ink().pos(Pos::new(HPos::Right, VPos::Center));
        text(heat.title, LEFT + width / 2, TOP / 2, &centred)?;
        text(heat.columns.0, LEFT + width / 2, TOP + height + 40, &centred)?;
        text(heat.rows.0, LEFT - 8, TOP / 2, &right)?;
        for (column, name) in columns.iter().enumerate() {
            text(name, LEFT + CELL.0 * column as i32 + CELL.0 / 2, TOP + height + 16, &centred)?;
        }
        for (row, name) in rows.iter().enumerate() {
            // The first row lies at the bottom.
            let y = TOP + height - CELL.1 * (row as i32 + 1);
            text(name, LEFT - 8, y + CELL.1 / 2, &right)?;
            for (column, value) in heat.values[row].iter().enumerate() {
                let x = LEFT + CELL.0 * column as i32;
                let Some(value) = value else {
                    text("-", x + CELL.0 / 2, y + CELL.1 / 2, &centred)?;
                    continue;
                };
                let part = if high > low { (value - low) / (high - low) } else { 0.5 };
                area.draw(&Rectangle::new(
                    [(x + 1, y + 1), (x + CELL.0 - 1, y + CELL.1 - 1)],
                    shade(part).filled(),
                ))
                .map_err(told)?;
                let on = if part < 0.55 { RGBColor(30, 30, 30) } else { RGBColor(245, 245, 245) };
                let style = FONT.into_font().color(&on).pos(Pos::new(HPos::Center, VPos::Center));
                text(&short(*value), x + CELL.0 / 2, y + CELL.1 / 2, &style)?;
            }
        }
        Ok(())
    })
}

/// From pale yellow over orange to dark purple.
fn shade(part: f64) -> RGBColor {
    const STOPS: [(f64, [f64; 3]); 3] =
        [(0.0, [250.0, 225.0, 150.0]), (0.5, [225.0, 120.0, 70.0]), (1.0, [85.0, 25.0, 90.0])];
    let upper = if part <= 0.5 { 1 } else { 2 };
    let ((from, dark), (to, light)) = (STOPS[upper - 1], STOPS[upper]);
    let way = (part - from) / (to - from);
    let [red, green, blue] = [0, 1, 2].map(|at: usize| (dark[at] + (light[at] - dark[at]) * way) as u8);
    RGBColor(red, green, blue)
}
