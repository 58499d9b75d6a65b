//! How much of a range the lists of a tree hold, from metadata in memory.

use forebay_base::Range;
use forebay_buffer_tree::{List, Node, Portion};

use crate::files::Fragment;

/// About how much the lists of a node and of all below it hold of the range.
pub(super) fn portion(node: &Node<Fragment>, range: &Range) -> Portion {
    let part = node.range().intersect(range);
    if part.is_empty() {
        return Portion::default();
    }
    let held = |list: &List<Fragment>| list.fragment.portion_inside(node.range(), list.portion(), &part);
    let mut sum = node.lists().iter().map(held).fold(Portion::default(), Portion::saturating_add);
    let first = node.children().partition_point(|child| child.range().low <= part.low).saturating_sub(1);
    let ends_before =
        |node: &Node<Fragment>| part.high.as_ref().is_some_and(|high| *high <= node.range().low);
    for child in node.children()[first..].iter().take_while(|child| !ends_before(child)) {
        sum = sum.saturating_add(portion(child, range));
    }
    sum
}
