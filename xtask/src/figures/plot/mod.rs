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
const INK: RGBColor = RGBColor(118, 118, 118);
const FONT: (&str, u32) = ("sans-serif", 14);
/// About the width of one.
const LETTER: i32 = 8;
/// What a row of a legend takes, and a plot's margin above and below.
const LEGEND_ROW: i32 = 20;
const LEGEND: i32 = 14;
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

/// Where the names of colours begin along the top, in as many rows as they take; nowhere where there is one.
fn legend_places<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> Vec<(i32, i32)> {
    if names.len() < 2 {
        return Vec::new();
    }
    let (mut x, mut y) = (16, 15);
    let place = |name: &str| {
        let width = 44 + name.chars().count() as i32 * LETTER;
        if x > 16 && x + width > SIZE.0 as i32 {
            (x, y) = (16, y + LEGEND_ROW);
        }
        x += width;
        (x - width, y)
    };
    names.map(place).collect()
}

/// What these names take above a plot.
fn legend_height<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> u32 {
    legend_places(names).last().map_or(12, |(_, y)| (y + LEGEND_ROW / 2 + LEGEND / 2 + 2) as u32)
}

/// Names of colours along the top.
fn legend<'n>(area: &Area<'_>, names: impl ExactSizeIterator<Item = &'n str> + Clone) -> Result<(), String> {
    let beside = ink().pos(Pos::new(HPos::Left, VPos::Center));
    let places = legend_places(names.clone());
    for ((colour, name), (x, y)) in COLOURS.iter().cycle().zip(names).zip(places) {
        area.draw(&Rectangle::new([(x, y - 6), (x + 12, y + 6)], colour.filled())).map_err(told)?;
        area.draw(&Text::new(name.to_string(), (x + 18, y), beside.clone())).map_err(told)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seventh lay outside of the plot.
    #[test]
    fn all_names_of_colours_are_within_the_plot() {
        let names = ["forebay-and-more"; 7];
        let places = legend_places(names.into_iter());
        let ends = |x: i32| x + 18 + names[0].len() as i32 * LETTER;
        assert!(places.iter().all(|&(x, _)| ends(x) <= SIZE.0 as i32), "{places:?}");
        assert!(legend_height(names.into_iter()) > legend_height(["a", "b"].into_iter()));
        assert_eq!((legend_places(["a"].into_iter()).len(), legend_height(["a"].into_iter())), (0, 12));
    }
}
