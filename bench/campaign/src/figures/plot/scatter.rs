//! Points with names, over two logarithmic axes.

use std::ops::Range;

use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::names::{leads_to, places, width};
use super::{COLOURS, INK, SIZE, draw, ink, span, ticks, told};
use crate::figures::table::metric;

/// A point, and the group by which it is coloured.
pub(in crate::figures) struct Dot {
    pub(in crate::figures) name: String,
    pub(in crate::figures) group: usize,
    pub(in crate::figures) at: (f64, f64),
}

/// Points with their names beside them.
pub(in crate::figures) fn scatter(names: [&str; 2], dots: &[Dot]) -> Result<String, String> {
    let x = span(dots.iter().map(|dot| dot.at.0));
    let y = span(dots.iter().map(|dot| dot.at.1));
    let log = |range: &Range<f64>| range.clone().log_scale().with_key_points(ticks(range));
    draw(SIZE, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .margin_top(12)
            .margin_right(24)
            .x_label_area_size(44)
            .y_label_area_size(84)
            .build_cartesian_2d(log(&x), log(&y))
            .map_err(told)?;
        chart
            .configure_mesh()
            .bold_line_style(INK.mix(0.35))
            .light_line_style(INK.mix(0.12))
            .axis_style(INK)
            .label_style(ink())
            .x_label_formatter(&|figure| metric(*figure))
            .y_label_formatter(&|figure| metric(*figure))
            .x_desc(format!("{}, log scale", names[0]))
            .y_desc(format!("{}, log scale", names[1]))
            .draw()
            .map_err(told)?;
        let (right, down) = chart.plotting_area().get_pixel_range();
        let frame = [right.start, down.start, right.end, down.end];
        let points: Vec<_> =
            dots.iter().map(|dot| (chart.backend_coord(&dot.at), dot.name.chars().count())).collect();
        let centred = ink().pos(Pos::new(HPos::Center, VPos::Center));
        for ((dot, place), (point, letters)) in std::iter::zip(dots, places(&points, frame)).zip(&points) {
            if let Some(end) = leads_to(*point, place, *letters) {
                area.draw(&PathElement::new([*point, end], INK.mix(0.6))).map_err(told)?;
            }
            let colour = COLOURS[dot.group % COLOURS.len()];
            area.draw(&Circle::new(*point, 4, colour.filled())).map_err(told)?;
            let middle = (place.0 + width(*letters) / 2, place.1);
            area.draw(&Text::new(dot.name.clone(), middle, centred.clone())).map_err(told)?;
        }
        Ok(())
    })
}
