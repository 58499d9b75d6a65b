//! Where the names of points stand, so that they cover neither each other nor a point.

/// About the width of a letter.
const LETTER: i32 = 7;
/// Half of a line's height, and what keeps a name from its point.
const HALF: i32 = 8;
const GAP: i32 = 8;
/// How far names may go from their points.
const AWAY: [i32; 7] = [0, 10, 22, 34, 48, 64, 84];

/// A rectangle: left, top, right, bottom.
type Box = [i32; 4];

/// A point, and how many letters its name has.
type Point = ((i32, i32), usize);

/// Where the left end of each name's middle stands, within a frame. Names are placed one by one, in several orders, of
/// which the best is taken: the one that covers the least and, of those, has its names nearest.
pub(super) fn places(points: &[Point], frame: Box) -> Vec<(i32, i32)> {
    let mut orders: Vec<Vec<usize>> = Vec::new();
    for by in [|point: &Point| point.0.0, |point: &Point| point.0.1] {
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_by_key(|&index| by(&points[index]));
        for _ in 0..points.len() {
            order.rotate_left(1);
            orders.push(order.clone());
            orders.push(order.iter().rev().copied().collect());
        }
    }
    let all = orders.iter().map(|order| placed(points, order, frame));
    all.min_by_key(|(cost, _)| *cost).map_or_else(Vec::new, |(_, places)| places)
}

/// All places, of names that are placed in this order, and what they cost.
fn placed(points: &[Point], order: &[usize], frame: Box) -> (i32, Vec<(i32, i32)>) {
    let mut taken: Vec<Box> = points.iter().map(|&((x, y), _)| [x - 5, y - 5, x + 5, y + 5]).collect();
    let (mut places, mut costs) = (vec![(0, 0); points.len()], 0);
    for &index in order {
        let (point, letters) = points[index];
        let width = width(letters);
        let cost = |place: &(i32, i32)| {
            let covered: i32 = lead(point, *place, letters).map(|dot| cost(dot, &taken, frame)).sum();
            10 * (cost(bounds(*place, width), &taken, frame) + 4 * covered) + away(point, *place, letters)
        };
        let place = candidates(point, width).min_by_key(cost).unwrap_or(point);
        costs += cost(&place);
        taken.push(bounds(place, width));
        taken.extend(lead(point, place, letters));
        places[index] = place;
    }
    (costs, places)
}

/// About the width of a name.
pub(super) fn width(letters: usize) -> i32 {
    letters as i32 * LETTER
}

/// What a line from a point to its name covers, but for its ends.
fn lead(point: (i32, i32), place: (i32, i32), letters: usize) -> impl Iterator<Item = Box> {
    let end = leads_to(point, place, letters);
    let steps = end.map_or(0, |end| (end.0 - point.0).abs().max((end.1 - point.1).abs()) / 4);
    let (across, down) = end.map_or((0, 0), |end| (end.0 - point.0, end.1 - point.1));
    (2..steps).map(move |step| {
        let (x, y) = (point.0 + across * step / steps, point.1 + down * step / steps);
        [x - 1, y - 1, x + 1, y + 1]
    })
}

/// Where a line from a point to its name ends; nowhere where the name is beside it.
pub(super) fn leads_to(point: (i32, i32), place: (i32, i32), letters: usize) -> Option<(i32, i32)> {
    (away(point, place, letters) > GAP + 2).then(|| nearest(point, place, letters))
}

/// How far a name is from its point.
fn away(point: (i32, i32), place: (i32, i32), letters: usize) -> i32 {
    let near = nearest(point, place, letters);
    (near.0 - point.0).abs().max((near.1 - point.1).abs())
}

fn nearest((x, y): (i32, i32), place: (i32, i32), letters: usize) -> (i32, i32) {
    let [left, top, right, bottom] = bounds(place, width(letters));
    (x.clamp(left, right), y.clamp(top, bottom))
}

fn bounds((x, y): (i32, i32), width: i32) -> Box {
    [x, y - HALF, x + width, y + HALF]
}

/// The nearer ones first.
fn candidates((x, y): (i32, i32), width: i32) -> impl Iterator<Item = (i32, i32)> {
    AWAY.into_iter().flat_map(move |away| {
        let (right, left) = (x + GAP, x - GAP - width);
        [
            (right + away, y),
            (left - away, y),
            (x - width / 2, y - GAP - HALF - away),
            (x - width / 2, y + GAP + HALF + away),
            (right, y - GAP - away),
            (right, y + GAP + away),
            (left, y - GAP - away),
            (left, y + GAP + away),
        ]
    })
}

/// What it covers, and what of it is outside of the frame; of equal ones the first is taken.
fn cost(own: Box, taken: &[Box], frame: Box) -> i32 {
    let covers = |other: &Box| {
        let across = own[2].min(other[2]) - own[0].max(other[0]);
        let down = own[3].min(other[3]) - own[1].max(other[1]);
        across.max(0) * down.max(0)
    };
    let inside = covers(&frame);
    let outside = (own[2] - own[0]) * (own[3] - own[1]) - inside;
    taken.iter().map(covers).sum::<i32>() + 10 * outside
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They went around their points in turn, whatever was there.
    #[test]
    fn names_of_a_cluster_are_apart() {
        let points: Vec<Point> = (0..12)
            .map(|number| ((300 + number % 4 * 14, 200 + number / 4 * 9), 10 + number as usize % 7))
            .collect();
        let frame = [100, 10, 800, 380];
        let places = places(&points, frame);
        for (index, (&place, &(_, letters))) in std::iter::zip(&places, &points).enumerate() {
            let own = bounds(place, width(letters));
            let others = std::iter::zip(&places, &points).enumerate().filter(|(other, _)| *other != index);
            let others: Vec<Box> =
                others.map(|(_, (&place, &(_, letters)))| bounds(place, width(letters))).collect();
            let dots: Vec<Box> = points.iter().map(|&((x, y), _)| [x - 5, y - 5, x + 5, y + 5]).collect();
            assert_eq!(cost(own, &[others, dots].concat(), frame), 0, "name {index} at {place:?}");
        }
    }
}
