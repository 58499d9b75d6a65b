//! A fault at every file operation of a short history: once, and from there on, of each kind, for every layout.

use forebay::Result;
use forebay_testkit::sweep;

use crate::Asked;

/// Which operations, and what goes wrong.
const FAULTS: [(&str, &str); 4] =
    [("any", "no-space"), ("any", "io-error"), ("write", "short"), ("sync", "lost")];

/// Every one of them; `rounds` does not count here, the operations do.
pub(crate) fn run(asked: &Asked) -> Result<()> {
    for layout in asked.layouts() {
        let (mut operations, mut noticed) = (0, 0);
        for (operation, fault) in FAULTS {
            for selection in ["#", "from:"] {
                let swept = sweep(layout, |number| format!("{operation} * {selection}{number} {fault}"));
                (operations, noticed) = (operations + swept.operations, noticed + swept.noticed);
            }
        }
        println!("{layout}: {operations} faults, {noticed} of them noticed, nothing lost");
    }
    Ok(())
}
