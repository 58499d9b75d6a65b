//! How much of a range the lists of a tree hold, from metadata in memory.

use forebay_base::Range;
use forebay_buffer_tree::{Node, Portion};

use crate::files::Fragment;

/// About how much the lists of a node and of all below it hold of the range.
pub(super) fn portion(node: &Node<Fragment>, range: &Range) -> Portion {
    let part = node.range().intersect(range);
    if part.is_empty() {
        return Portion::default();
    }
    let (mut records, mut bytes) = (0.0, 0.0);
    for list in node.lists() {
        let share =
            if part == *node.range() { 1.0 } else { list.fragment.0.share_inside(node.range(), &part) };
        records += share * list.records as f64;
        bytes += share * list.bytes as f64;
    }
    let mut sum = Portion { bytes: bytes as u64, records: records as u64 };
    let first = node.children().partition_point(|child| child.range().low <= part.low).saturating_sub(1);
    let ends_before =
        |node: &Node<Fragment>| part.high.as_ref().is_some_and(|high| *high <= node.range().low);
    for child in node.children()[first..].iter().take_while(|child| !ends_before(child)) {
        let Portion { bytes, records } = portion(child, range);
        sum.bytes = sum.bytes.saturating_add(bytes);
        sum.records = sum.records.saturating_add(records);
    }
    sum
}
