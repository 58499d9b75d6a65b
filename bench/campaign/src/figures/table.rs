//! Markdown tables, and numbers as people read them.

use std::fmt::Write;

/// Rows of one width.
pub(super) struct Table {
    text: String,
    columns: usize,
}

impl Table {
    pub(super) fn new(head: &[&str]) -> Self {
        let mut table = Self { text: String::new(), columns: head.len() };
        table.row(head.iter().map(ToString::to_string));
        // The first column is words, the others are numbers.
        let aligned: Vec<&str> = (0..head.len()).map(|at| if at == 0 { "---" } else { "---:" }).collect();
        table.row(aligned.iter().map(ToString::to_string));
        table
    }

    /// Cells that are missing stay empty.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut cells: Vec<String> = cells.into_iter().collect();
        cells.resize(self.columns, String::new());
        let _ = writeln!(self.text, "| {} |", cells.join(" | "));
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// Three digits that matter, with thousands grouped.
pub(super) fn short(figure: f64) -> String {
    let size = figure.abs();
    if !figure.is_finite() {
        "-".into()
    } else if size >= 1000.0 {
        grouped(figure.round() as i64)
    } else if size >= 100.0 || figure == 0.0 {
        format!("{figure:.0}")
    } else if size >= 10.0 {
        trimmed(format!("{figure:.1}"))
    } else if size >= 0.1 {
        trimmed(format!("{figure:.2}"))
    } else {
        trimmed(format!("{figure:.4}"))
    }
}

/// A dash where there is nothing.
pub(super) fn cell(figure: Option<f64>) -> String {
    figure.map_or_else(|| "-".into(), short)
}

/// Such as 1.5 M, for axes.
pub(super) fn metric(figure: f64) -> String {
    for (unit, size) in [("G", 1e9), ("M", 1e6), ("k", 1e3)] {
        if figure.abs() >= size {
            return format!("{} {unit}", short(figure / size));
        }
    }
    short(figure)
}

/// In powers of 1024.
pub(super) fn bytes(count: u64) -> String {
    match count {
        count if count >= 1 << 20 => format!("{} MiB", count >> 20),
        count => format!("{} KiB", count >> 10),
    }
}

fn trimmed(text: String) -> String {
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

fn grouped(figure: i64) -> String {
    let digits = figure.unsigned_abs().to_string();
    let mut text = String::from(if figure < 0 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
