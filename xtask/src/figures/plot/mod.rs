//! Plots as SVG, of colours that are read on white and on black: the ground is left out.

mod bars;
mod heat;
mod lines;

use plotters::coord::Shift;
use plotters::prelude::*;

pub(super) use bars::bars;
pub(super) use heat::{Heat, heat};
pub(super) use lines::{Axis, Line, lines};

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
