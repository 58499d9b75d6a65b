//! By what a file is known again that was closed and opened by its name.

use std::time::SystemTime;

/// Which file it is.
#[derive(Debug, Clone, Copy)]
pub struct Identity {
    /// Its device and its number there.
    pub inode: (u64, u64),
    /// When it was made, where the file system tells: numbers are given again.
    pub born: Option<SystemTime>,
    /// When it was last written.
    pub modified: Option<SystemTime>,
}

impl Identity {
    /// Whether this is the file that was met before. Some file systems number a file anew each time, so a file that
    /// was not written since is the same whatever its number. A copy that shows the same time has what its original
    /// had.
    pub fn is_same(&self, before: &Self) -> bool {
        let was_not_written = self.modified.is_some() && self.modified == before.modified;
        was_not_written || (self.inode, self.born) == (before.inode, before.born)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_file_is_known_by_its_number_and_birth_or_by_when_it_was_written() {
        let at = |seconds| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        let one = Identity { inode: (1, 2), born: at(3), modified: at(4) };
        assert!(Identity { modified: at(9), ..one }.is_same(&one), "a tree that has grown");
        assert!(Identity { inode: (1, 9), ..one }.is_same(&one), "numbered anew");
        assert!(
            !Identity { born: at(9), modified: at(9), ..one }.is_same(&one),
            "its number was given again"
        );
        assert!(!Identity { inode: (1, 9), modified: at(9), ..one }.is_same(&one), "another one");
        let timeless = Identity { born: None, modified: None, ..one };
        assert!(timeless.is_same(&timeless) && !Identity { inode: (1, 9), ..timeless }.is_same(&timeless));
    }
}
