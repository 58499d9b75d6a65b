//! What others write, taken apart and put together: for fuzzers.

use crate::resp::{Limits, Requests, Wrong};

/// A request's arguments.
pub type Request = Vec<Vec<u8>>;

/// The requests of bytes that come in pieces, and what ends them where they break the protocol.
pub fn requests<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> (Vec<Request>, Option<&'static str>) {
    let limits = Limits { arguments_max: 1024, argument_bytes_max: 1 << 16 };
    let (mut requests, mut all) = (Requests::default(), Vec::new());
    for piece in pieces {
        requests.extend(piece);
        loop {
            match requests.next(limits) {
                Ok(Some(spans)) => {
                    all.push(spans.iter().map(|span| requests.argument(*span).to_vec()).collect())
                }
                Ok(None) => break,
                Err(Wrong(text)) => return (all, Some(text)),
            }
        }
        requests.forget(&[]);
    }
    (all, None)
}

/// The users of a file, as a file that makes the same ones; or what is wrong with it.
pub fn users(text: &[u8]) -> Result<Vec<u8>, String> {
    crate::acl::shown_users(text)
}
