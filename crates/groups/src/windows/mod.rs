//! Groups by key and by time, in windows that are dropped as a whole: what they are, rows with their windows, and walks.

mod input;
mod shape;
mod walk;

pub use input::{Late, WINDOW, Windowed, windowed_schema};
pub use shape::{Length, WindowShape};
pub use walk::{WindowStates, WindowsWalk, split_window};
