//! Options as text to be kept beside results.

/// `name = value` lines, in the order of the names.
pub(crate) fn lines(options: impl IntoIterator<Item = (String, String)>) -> String {
    let mut lines: Vec<String> =
        options.into_iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
    lines.sort();
    lines.concat()
}
