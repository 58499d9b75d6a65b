//! Groups of figures, a row each: bars from zero or, where they span more than a decade, dots on a logarithmic axis,
//! on which a length would say nothing.

use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Area, COLOURS, INK, SIZE, draw, ink, legend, legend_height, span, ticks, told};
use crate::figures::results::Spread;
use crate::figures::table::metric;

/// Rounds that lie closer together than this share are not told apart.
const SPREAD_MIN: f64 = 0.02;

/// What a row shows.
#[derive(Clone, Copy, Debug)]
pub(in crate::figures) struct Mark {
    pub(in crate::figures) spread: Spread,
    /// The same with what is left to do at the end, as a hollow dot.
    pub(in crate::figures) in_all: Option<f64>,
}

impl From<Spread> for Mark {
    fn from(spread: Spread) -> Self {
        Self { spread, in_all: None }
    }
}

impl From<f64> for Mark {
    fn from(figure: f64) -> Self {
        Spread { median: figure, min: figure, max: figure }.into()
    }
}

impl Mark {
    fn is_spread(&self) -> bool {
        self.spread.max - self.spread.min > SPREAD_MIN * self.spread.median
    }

    fn figures(self) -> impl Iterator<Item = f64> {
        [self.spread.min, self.spread.median, self.spread.max].into_iter().chain(self.in_all)
    }
}

/// Groups, from the top, with a row for each of a series.
pub(in crate::figures) fn bars<M: Copy + Into<Mark>>(
    name: &str,
    groups: &[&str],
    series: &[(String, Vec<Option<M>>)],
) -> Result<String, String> {
    let marks = series.iter().map(|(name, values)| {
        (name.clone(), values.iter().map(|value| value.map(Into::into)).collect::<Vec<Option<Mark>>>())
    });
    let drawn: Vec<Rows> = marks.filter(|(_, marks)| marks.iter().any(Option::is_some)).collect();
    let marks = || drawn.iter().flat_map(|(_, marks)| marks.iter().flatten());
    let figures = || marks().flat_map(|mark| mark.figures());
    let most = figures().fold(0.0, f64::max);
    let is_log = most > 10.0 * figures().fold(f64::INFINITY, f64::min);
    let notes = [
        (is_log, ", log scale"),
        (marks().any(|mark| mark.in_all.is_some()), "; hollow: until no background work is left"),
        (marks().any(Mark::is_spread), "; lines: least to most"),
    ];
    let notes = notes.into_iter().filter_map(|(is_so, note)| is_so.then_some(note));
    let name = format!("{name}{}", notes.collect::<String>());
    let height = (groups.len() * (drawn.len() + 1) * 15) as u32 + 110;
    draw((SIZE.0, height), |area| match is_log {
        true => {
            let range = span(figures());
            let shape = Shape::Dots { least: range.start, most: range.end };
            paint_bars(
                area,
                shape,
                range.clone().log_scale().with_key_points(ticks(&range)),
                &name,
                groups,
                &drawn,
            )
        }
        false => paint_bars(area, Shape::Bars, 0.0..most.max(1.0), &name, groups, &drawn),
    })
}

/// A name, and a figure a group.
type Rows = (String, Vec<Option<Mark>>);

#[derive(Clone, Copy)]
enum Shape {
    Bars,
    /// From where to where the axis goes.
    Dots {
        least: f64,
        most: f64,
    },
}

fn paint_bars<'a, X>(
    area: &Area<'a>,
    shape: Shape,
    across: X,
    name: &str,
    groups: &[&str],
    drawn: &[Rows],
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
    let floor = match shape {
        Shape::Bars => 0.0,
        Shape::Dots { least, .. } => least,
    };
    for (index, (_, marks)) in drawn.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        for (group, mark) in marks.iter().enumerate() {
            let place = |part: f64| (groups.len() - group) as f64 - (index as f64 + 0.5 + part) / slots;
            match mark {
                Some(mark) => row(&mut chart, shape, mark, colour, &place)?,
                None => words(&mut chart, (floor, place(0.5)), "not measured".into(), 4)?,
            }
        }
    }
    let before = ink().pos(Pos::new(HPos::Right, VPos::Center));
    let name = |(group, name): (usize, &&str)| {
        let middle = (groups.len() - group) as f64 - 0.5;
        EmptyElement::at((floor, middle)) + Text::new(name.to_string(), (-8, 0), before.clone())
    };
    chart.draw_series(groups.iter().enumerate().map(name)).map_err(told)?;
    legend(area, drawn.iter().map(|(name, _)| name.as_str()))
}

type Chart<'a, 'b, X> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, RangedCoordf64>>;

/// Words beside a place.
fn words<X: Ranged<ValueType = f64>>(
    chart: &mut Chart<'_, '_, X>,
    at: (f64, f64),
    words: String,
    away: i32,
) -> Result<(), String> {
    let beside = ink().pos(Pos::new(HPos::Left, VPos::Center));
    chart.draw_series([EmptyElement::at(at) + Text::new(words, (away, 0), beside)]).map_err(told).map(drop)
}

/// A figure, its rounds, and what it comes to in all; `place` tells where parts of the row are.
fn row<X: Ranged<ValueType = f64>>(
    chart: &mut Chart<'_, '_, X>,
    shape: Shape,
    mark: &Mark,
    colour: RGBColor,
    place: &dyn Fn(f64) -> f64,
) -> Result<(), String> {
    let (Spread { median, min, max }, middle) = (mark.spread, place(0.5));
    match shape {
        Shape::Bars => {
            let corners = [(0.0, place(0.06)), (median, place(0.94))];
            chart.draw_series([Rectangle::new(corners, colour.filled())]).map_err(told)?;
        }
        Shape::Dots { least, most } => {
            let row = [(least, middle), (most, middle)];
            chart.draw_series([PathElement::new(row, INK.mix(0.15))]).map_err(told)?;
            chart.draw_series([Circle::new((median, middle), 5, colour.filled())]).map_err(told)?;
        }
    }
    if mark.is_spread() {
        let line = PathElement::new([(min, middle), (max, middle)], INK.stroke_width(2));
        chart.draw_series([line]).map_err(told)?;
    }
    let in_all = mark.in_all.map(|figure| Circle::new((figure, middle), 5, colour.stroke_width(2)));
    chart.draw_series(in_all).map_err(told)?;
    words(chart, (if mark.is_spread() { max } else { median }, middle), metric(median), 9)
}
