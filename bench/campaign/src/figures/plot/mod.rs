//! Plots as SVG, of colours that are read on white and on black: the ground is left out.

mod bars;
mod heat;
mod lines;
mod names;
mod scatter;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub(super) use bars::{Mark, bars};
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
/// By which factor a logarithmic axis goes beyond its figures at least.
const ROOM: f64 = 1.05;
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

/// Where a logarithmic axis may begin and end, and what it may name, as multiples of powers of ten.
const STEPS: [f64; 7] = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0];

/// The nearest steps around all figures above 0, with some room. Whole decades would leave much of a plot empty.
fn span(figures: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (low, high) = figures
        .filter(|figure| *figure > 0.0)
        .fold((f64::INFINITY, 0.0f64), |(low, high), figure| (low.min(figure), high.max(figure)));
    if low > high {
        return 1.0..10.0;
    }
    let (low, high) = (low / ROOM, high * ROOM);
    let start = steps(low / 10.0..low, &STEPS).last().unwrap_or(low);
    let end = steps(high..high * 10.0, &STEPS).next().unwrap_or(high);
    start..end
}

/// What a logarithmic axis names: the fewer, the longer it is.
fn ticks(range: &std::ops::Range<f64>) -> Vec<f64> {
    let named: &[f64] = match range.end / range.start {
        ..12.0 => &STEPS,
        ..300.0 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    steps(range.clone(), named).collect()
}

/// Multiples of powers of ten within a range, both ends too.
fn steps(range: std::ops::Range<f64>, multiples: &[f64]) -> impl Iterator<Item = f64> {
    let decades = range.start.log10().floor() as i32..=range.end.log10().floor() as i32;
    let is_within =
        move |step: &f64| *step >= range.start * (1.0 - 1e-9) && *step <= range.end * (1.0 + 1e-9);
    decades.flat_map(|decade| multiples.iter().map(move |step| step * 10f64.powi(decade))).filter(is_within)
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

    /// Axes went to the next power of ten: a half of the plot was empty.
    #[test]
    fn a_logarithmic_axis_ends_near_its_figures() {
        let is = |figures: &[f64], (low, high): (f64, f64)| {
            let range = span(figures.iter().copied());
            assert!(
                (range.start / low - 1.0).abs() < 1e-9 && (range.end / high - 1.0).abs() < 1e-9,
                "{range:?}"
            );
        };
        is(&[1.2, 3.3], (1.0, 4.0));
        is(&[154_000.0, 10_016_349.0], (100_000.0, 15_000_000.0));
        is(&[1.0, 126.0], (0.7, 150.0));
        is(&[0.0], (1.0, 10.0));
        assert_eq!(ticks(&(200_000.0..5_000_000.0)), [2e5, 5e5, 1e6, 2e6, 5e6]);
        assert_eq!(ticks(&(1.0..4.0)), [1.0, 1.5, 2.0, 3.0, 4.0]);
        assert_eq!(ticks(&(5.0..3e4)), [10.0, 100.0, 1e3, 1e4]);
    }

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
