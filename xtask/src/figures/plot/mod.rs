//! Plots as SVG, of colours that are read on white and on black: the ground is left out.

mod bars;
mod heat;
mod lines;
mod scatter;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub(super) use bars::bars;
pub(super) use heat::{Heat, heat};
pub(super) use lines::{Axis, Line, lines, panels};
pub(super) use scatter::{Dot, scatter};

const SIZE: (u32, u32) = (860, 420);
/// Words and axes.
const INK: RGBColor = RGBColor(128, 128, 128);
const FONT: (&str, u32) = ("sans-serif", 14);
/// About the width of one.
const LETTER: i32 = 8;
/// What a legend takes.
const LEGEND: u32 = 34;
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

/// Names of colours along the top, above `LEGEND` pixels; none where there is one.
fn legend<'n>(area: &Area<'_>, names: impl ExactSizeIterator<Item = &'n str>) -> Result<(), String> {
    if names.len() < 2 {
        return Ok(());
    }
    let beside = ink().pos(Pos::new(HPos::Left, VPos::Center));
    let mut x = 16;
    for (colour, name) in COLOURS.iter().cycle().zip(names) {
        area.draw(&Rectangle::new([(x, 9), (x + 12, 21)], colour.filled())).map_err(told)?;
        area.draw(&Text::new(name.to_string(), (x + 18, 15), beside.clone())).map_err(told)?;
        x += 44 + name.chars().count() as i32 * LETTER;
    }
    Ok(())
}
