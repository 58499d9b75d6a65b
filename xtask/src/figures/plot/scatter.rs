//! Points with names, over two logarithmic axes.

use plotters::coord::combinators::IntoLogRange;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{COLOURS, INK, SIZE, decades, draw, ink, told};
use crate::figures::table::metric;

/// A point, and the group by which it is coloured.
pub(in crate::figures) struct Dot {
    pub(in crate::figures) name: String,
    pub(in crate::figures) group: usize,
    pub(in crate::figures) at: (f64, f64),
}

/// Points with their names beside them.
pub(in crate::figures) fn scatter(names: [&str; 2], dots: &[Dot]) -> Result<String, String> {
    let x = decades(dots.iter().map(|dot| dot.at.0));
    let y = decades(dots.iter().map(|dot| dot.at.1));
    draw(SIZE, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .margin_top(12)
            .margin_right(24)
            .x_label_area_size(44)
            .y_label_area_size(84)
            .build_cartesian_2d(x.clone().log_scale(), y.log_scale())
            .map_err(told)?;
        chart
            .configure_mesh()
            .bold_line_style(INK.mix(0.35))
            .light_line_style(INK.mix(0.12))
            .axis_style(INK)
            .label_style(ink())
            .x_label_formatter(&|figure| metric(*figure))
            .y_label_formatter(&|figure| metric(*figure))
            .x_desc(names[0])
            .y_desc(names[1])
            .draw()
            .map_err(told)?;
        // On both sides in turn, and above and below, so that names of neighbours stay apart; within the plot at its edges.
        let sides = [(HPos::Left, -7), (HPos::Right, 7), (HPos::Left, 7), (HPos::Right, -7)];
        let drawn = |(dot, (side, up)): (&Dot, (HPos, i32))| {
            let share = (dot.at.0 / x.start).ln() / (x.end / x.start).ln();
            let side = match share {
                ..0.25 => HPos::Left,
                0.75.. => HPos::Right,
                _ => side,
            };
            let away = if matches!(side, HPos::Left) { 8 } else { -8 };
            EmptyElement::at(dot.at)
                + Circle::new((0, 0), 4, COLOURS[dot.group % COLOURS.len()].filled())
                + Text::new(dot.name.clone(), (away, up), ink().pos(Pos::new(side, VPos::Center)))
        };
        let sides = sides.into_iter().cycle();
        chart.draw_series(std::iter::zip(dots, sides).map(drawn)).map_err(told)?;
        Ok(())
    })
}
