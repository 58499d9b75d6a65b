//! Groups of bars that lie.

use plotters::coord::combinators::IntoLogRange;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Area, COLOURS, INK, SIZE, decades, draw, ink, legend, legend_height, told};
use crate::figures::table::metric;

/// Groups of bars, from the top a group each; on a logarithmic axis where they span more than a decade.
pub(in crate::figures) fn bars(
    name: &str,
    groups: &[&str],
    series: &[(String, Vec<Option<f64>>)],
) -> Result<String, String> {
    let drawn: Vec<Bars<'_>> =
        series.iter().filter(|(_, values)| values.iter().any(Option::is_some)).collect();
    let figures = || drawn.iter().flat_map(|(_, values)| values.iter().flatten().copied());
    let most = figures().fold(0.0, f64::max);
    let spans_decade = most > 10.0 * figures().fold(f64::INFINITY, f64::min);
    let height = (groups.len() * (drawn.len() + 1) * 15) as u32 + 110;
    draw((SIZE.0, height), |area| match spans_decade {
        true => {
            let range = decades(figures());
            paint_bars(area, range.start, range.log_scale(), name, groups, &drawn)
        }
        false => paint_bars(area, 0.0, 0.0..most.max(1.0), name, groups, &drawn),
    })
}

/// A name, and a figure a group.
type Bars<'a> = &'a (String, Vec<Option<f64>>);

fn paint_bars<'a, X>(
    area: &Area<'a>,
    floor: f64,
    across: X,
    name: &str,
    groups: &[&str],
    drawn: &[Bars<'_>],
) -> Result<(), String>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64> + 'a,
{
    let slots = drawn.len() as f64 + 1.0;
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .margin_top(legend_height(drawn.iter().map(|(name, _)| name.as_str())))
        .margin_right(70)
        .x_label_area_size(44)
        .y_label_area_size(190)
        .build_cartesian_2d(across, 0f64..groups.len() as f64)
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
    for (index, (_, values)) in drawn.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let place =
            |group: usize, part: f64| (groups.len() - group) as f64 - (index as f64 + 0.5 + part) / slots;
        let measured = || values.iter().enumerate().filter_map(|(group, value)| Some((group, (*value)?)));
        let bar = |(group, value): (usize, f64)| {
            Rectangle::new([(floor, place(group, 0.06)), (value, place(group, 0.94))], colour.filled())
        };
        chart.draw_series(measured().map(bar)).map_err(told)?;
        let number = |(group, value)| {
            EmptyElement::at((value, place(group, 0.5))) + Text::new(metric(value), (4, 0), beside.clone())
        };
        chart.draw_series(measured().map(number)).map_err(told)?;
    }
    let before = ink().pos(Pos::new(HPos::Right, VPos::Center));
    let name = |(group, name): (usize, &&str)| {
        let middle = (groups.len() - group) as f64 - 0.5;
        EmptyElement::at((floor, middle)) + Text::new(name.to_string(), (-8, 0), before.clone())
    };
    chart.draw_series(groups.iter().enumerate().map(name)).map_err(told)?;
    legend(area, drawn.iter().map(|(name, _)| name.as_str()))
}
