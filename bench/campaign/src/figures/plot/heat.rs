//! Heat maps: tables whose cells are coloured, with their numbers in them.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Area, FONT, LETTER, draw, ink, told};
use crate::figures::table::short;

const LEFT: i32 = 110;
const TOP: i32 = 34;
const CELL: (i32, i32) = (96, 44);
/// What the colours take before their words.
const KEY: i32 = 110;
const MIDDLE: Pos = Pos { h_pos: HPos::Center, v_pos: VPos::Center };

/// A table whose cells are coloured by their numbers.
pub(in crate::figures) struct Heat {
    pub(in crate::figures) title: &'static str,
    /// What the colours mean, beside that dark is more: which is better, and of how many runs a cell is.
    pub(in crate::figures) note: String,
    /// What rows are, and their names from the bottom up.
    pub(in crate::figures) rows: (&'static str, Vec<String>),
    pub(in crate::figures) columns: (&'static str, Vec<String>),
    pub(in crate::figures) values: Vec<Vec<Option<f64>>>,
}

/// Cells from pale for the least to dark for the most.
pub(in crate::figures) fn heat(heat: &Heat) -> Result<String, String> {
    let (rows, columns) = (&heat.rows.1, &heat.columns.1);
    let (width, height) = (CELL.0 * columns.len() as i32, CELL.1 * rows.len() as i32);
    let known = || heat.values.iter().flatten().flatten().copied();
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let words = format!("{} to {}; {}", short(low), short(high), heat.note);
    let key_width = KEY + words.chars().count() as i32 * LETTER;
    draw(((LEFT + width.max(key_width) + 12) as u32, (TOP + height + 84) as u32), |area| {
        let (centred, right) = (ink().pos(MIDDLE), ink().pos(Pos::new(HPos::Right, VPos::Center)));
        text(area, heat.title, (LEFT + width / 2, TOP / 2), &centred)?;
        text(area, heat.columns.0, (LEFT + width / 2, TOP + height + 40), &centred)?;
        text(area, heat.rows.0, (LEFT - 8, TOP / 2), &right)?;
        key(area, (LEFT, TOP + height + 66), &words)?;
        for (column, name) in columns.iter().enumerate() {
            let x = LEFT + CELL.0 * column as i32 + CELL.0 / 2;
            text(area, name, (x, TOP + height + 16), &centred)?;
        }
        for (row, (name, values)) in std::iter::zip(rows, &heat.values).enumerate() {
            let y = TOP + height - CELL.1 * (row as i32 + 1);
            text(area, name, (LEFT - 8, y + CELL.1 / 2), &right)?;
            for (column, value) in values.iter().enumerate() {
                let corner = (LEFT + CELL.0 * column as i32, y);
                match value {
                    Some(value) => cell(area, corner, *value, part_of(*value, low, high))?,
                    None => text(area, "-", (corner.0 + CELL.0 / 2, y + CELL.1 / 2), &centred)?,
                }
            }
        }
        Ok(())
    })
}

/// All colours, from the least to the most, and what they mean.
fn key(area: &Area<'_>, (x, y): (i32, i32), words: &str) -> Result<(), String> {
    for step in 0..20 {
        let corners = [(x + 5 * step, y - 7), (x + 5 * step + 5, y + 7)];
        area.draw(&Rectangle::new(corners, shade(step as f64 / 19.0).filled())).map_err(told)?;
    }
    text(area, words, (x + KEY, y), &ink().pos(Pos::new(HPos::Left, VPos::Center)))
}

fn text(area: &Area<'_>, words: &str, at: (i32, i32), style: &TextStyle<'_>) -> Result<(), String> {
    area.draw(&Text::new(words.to_string(), at, style.clone())).map_err(told)
}

fn cell(area: &Area<'_>, (x, y): (i32, i32), value: f64, part: f64) -> Result<(), String> {
    let inside = [(x + 1, y + 1), (x + CELL.0 - 1, y + CELL.1 - 1)];
    area.draw(&Rectangle::new(inside, shade(part).filled())).map_err(told)?;
    let on = if part < 0.55 { RGBColor(30, 30, 30) } else { RGBColor(245, 245, 245) };
    text(area, &short(value), (x + CELL.0 / 2, y + CELL.1 / 2), &FONT.into_font().color(&on).pos(MIDDLE))
}

/// Where a value lies between two: by logarithms where they span more than a decade, so that one far off does
/// not make all others alike.
fn part_of(value: f64, low: f64, high: f64) -> f64 {
    if high <= low {
        0.5
    } else if low > 0.0 && high > 10.0 * low {
        (value / low).ln() / (high / low).ln()
    } else {
        (value - low) / (high - low)
    }
}

/// From pale yellow over orange to dark purple.
fn shade(part: f64) -> RGBColor {
    const STOPS: [[f64; 3]; 3] = [[250.0, 225.0, 150.0], [225.0, 120.0, 70.0], [85.0, 25.0, 90.0]];
    let (below, way) = if part < 0.5 { (0, part * 2.0) } else { (1, part * 2.0 - 1.0) };
    let mix = |at: usize| (STOPS[below][at] + (STOPS[below + 1][at] - STOPS[below][at]) * way) as u8;
    RGBColor(mix(0), mix(1), mix(2))
}
