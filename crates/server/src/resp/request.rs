//! Requests: arrays of bulk strings, or lines of words. What is not whole yet is gone on with once there is more, from
//! where it was; nothing is allocated for what a length only promises.

use smallvec::SmallVec;

/// Where an argument lies, from byte to byte.
type Span = (usize, usize);

/// What a request may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) arguments_max: usize,
    pub(crate) argument_bytes_max: usize,
}

/// The longest line of a length or of words, in bytes, unless an argument may have less.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Memory that is kept for requests while there are none.
const KEPT_BYTES_MAX: usize = 16 << 10;
/// What browsers begin with, and each of their lines that name the machine: a page that one shows must not have the
/// body of its request done, where no password is asked.
const OF_BROWSERS: [&[u8]; 2] = [b"POST", b"HOST:"];

/// A request that breaks the protocol: the connection ends with this error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wrong(pub(crate) &'static str);

/// A connection's bytes, cut into requests.
///
/// **Invariant:** spans lie in `bytes`, from `start` on and before `at`.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    bytes: Vec<u8>,
    /// Nobody needs what is before it.
    start: usize,
    /// What was looked at.
    at: usize,
    /// Of the array that is begun: what is still to come, and what is there.
    missing: usize,
    begun: SmallVec<[Span; 8]>,
    /// The length of the bulk string that is begun.
    length: Option<usize>,
}

/// The arguments of a request, of which the first is its name.
pub(crate) type Spans = SmallVec<[Span; 8]>;

impl Requests {
    /// Takes what was read. No request waits: so what is kept is part of one, and is moved once a read.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        let start = std::mem::take(&mut self.start);
        if start > 0 {
            self.bytes.drain(..start);
            self.at -= start;
            self.begun.iter_mut().for_each(|span| *span = (span.0 - start, span.1 - start));
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes that are not requests yet.
    pub(crate) fn rest_bytes(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        let begun = if self.begun.spilled() { self.begun.capacity() * size_of::<Span>() } else { 0 };
        self.bytes.capacity() + begun
    }

    /// Whether no part of a request waits for the rest.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.at == self.bytes.len() && self.missing == 0
    }

    pub(crate) fn argument(&self, (from, to): Span) -> &[u8] {
        &self.bytes[from..to]
    }

    /// Forgets the requests that were taken, but for those that wait. What is begun stays.
    pub(crate) fn forget(&mut self, waiting: &[Spans]) {
        let first = waiting.iter().flatten().chain(&self.begun).next();
        self.start = first.map_or(self.at, |first| first.0);
        if self.start == self.bytes.len() {
            (self.start, self.at) = (0, 0);
            self.bytes.clear();
            if self.bytes.capacity() > KEPT_BYTES_MAX {
                self.bytes = Vec::new();
            }
        }
    }

    /// The next request, if it is whole. An empty one is none.
    pub(crate) fn next(&mut self, limits: Limits) -> Result<Option<Spans>, Wrong> {
        loop {
            if self.missing == 0 {
                match self.bytes.get(self.at) {
                    None => return Ok(None),
                    Some(b'*') => {
                        let Some(line) = self.line(limits)? else { return Ok(None) };
                        let count = number(&self.bytes[line.0 + 1..line.1]);
                        let count = count.ok_or(Wrong("Protocol error: invalid multibulk length"))?;
                        if count > limits.arguments_max as i64 {
                            return Err(Wrong("Protocol error: invalid multibulk length"));
                        }
                        self.missing = count.max(0) as usize;
                        continue;
                    }
                    Some(_) => {
                        let Some(line) = self.line(limits)? else { return Ok(None) };
                        let words = words(&self.bytes, line);
                        if words.len() > limits.arguments_max {
                            return Err(Wrong("Protocol error: too many words"));
                        }
                        if let Some(first) = words.first() {
                            let first = self.argument(*first);
                            if OF_BROWSERS.iter().any(|word| first.eq_ignore_ascii_case(word)) {
                                return Err(Wrong("Protocol error: this is no server of web pages"));
                            }
                            return Ok(Some(words));
                        }
                        continue;
                    }
                }
            }
            if !self.bulk(limits)? {
                return Ok(None);
            }
            if self.missing == 0 {
                return Ok(Some(std::mem::take(&mut self.begun)));
            }
        }
    }

    /// Takes the next bulk string of the array that is begun, if it is whole.
    fn bulk(&mut self, limits: Limits) -> Result<bool, Wrong> {
        let length = match self.length {
            Some(length) => length,
            None => {
                match self.bytes.get(self.at) {
                    None => return Ok(false),
                    Some(b'$') => {}
                    Some(_) => return Err(Wrong("Protocol error: expected '$'")),
                }
                let Some(line) = self.line(limits)? else { return Ok(false) };
                let length = number(&self.bytes[line.0 + 1..line.1]);
                let length = length.and_then(|length| usize::try_from(length).ok());
                let length = length.filter(|length| *length <= limits.argument_bytes_max);
                *self.length.insert(length.ok_or(Wrong("Protocol error: invalid bulk length"))?)
            }
        };
        let end = self.at + length;
        match self.bytes.get(end..end + 2) {
            None => return Ok(false),
            Some(b"\r\n") => {}
            Some(_) => return Err(Wrong("Protocol error: expected CRLF behind a bulk string")),
        }
        self.begun.push((self.at, end));
        (self.at, self.length) = (end + 2, None);
        self.missing -= 1;
        Ok(true)
    }

    /// A line from where it was to the next end of a line, without that.
    fn line(&mut self, limits: Limits) -> Result<Option<Span>, Wrong> {
        let rest = &self.bytes[self.at..];
        let most = LINE_BYTES_MAX.min(limits.argument_bytes_max);
        let Some(length) = rest.iter().take(most + 1).position(|byte| *byte == b'\n') else {
            let is_long = rest.len() > most;
            return if is_long { Err(Wrong("Protocol error: too big inline request")) } else { Ok(None) };
        };
        let start = self.at;
        self.at += length + 1;
        let end = start + length;
        Ok(Some((start, if end > start && self.bytes[end - 1] == b'\r' { end - 1 } else { end })))
    }
}

/// A decimal number of at most 18 digits.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0, |value, digit| 10 * value + i64::from(digit - b'0'));
    Some(if is_negative { -value } else { value })
}

fn words(bytes: &[u8], (start, end): Span) -> Spans {
    let mut words = Spans::new();
    let mut at = start;
    while at < end {
        let length = bytes[at..end].iter().position(u8::is_ascii_whitespace).unwrap_or(end - at);
        if length > 0 {
            words.push((at, at + length));
        }
        at += length + 1;
    }
    words
}

/// A request of these words, as a client sends it.
pub(crate) fn encoded(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits { arguments_max: 1024, argument_bytes_max: 1 << 20 };

    fn encode(request: &[Vec<u8>]) -> Vec<u8> {
        encoded(&request.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    fn taken(requests: &mut Requests) -> Result<Vec<Vec<Vec<u8>>>, Wrong> {
        let mut all = Vec::new();
        while let Some(spans) = requests.next(LIMITS)? {
            all.push(spans.iter().map(|span| requests.argument(*span).to_vec()).collect());
        }
        requests.forget(&[]);
        Ok(all)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// However bytes are divided, they are the same requests.
        #[test]
        fn any_division_gives_the_same_requests(
            asked in prop::collection::vec(prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..6), 0..6),
            cuts in prop::collection::vec(1..17usize, 1..8),
        ) {
            let bytes: Vec<u8> = asked.iter().flat_map(|request| encode(request)).collect();
            let (mut requests, mut got, mut rest) = (Requests::default(), Vec::new(), &bytes[..]);
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (some, behind) = rest.split_at((*cut).min(rest.len()));
                requests.extend(some);
                got.extend(taken(&mut requests).expect("it is sound"));
                rest = behind;
            }
            prop_assert!(requests.is_empty());
            prop_assert_eq!(got, asked);
        }

        /// Any bytes at all: requests or an error, and no panic.
        #[test]
        fn any_bytes_are_requests_or_wrong(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut requests = Requests::default();
            requests.extend(&bytes);
            let _ = taken(&mut requests);
        }
    }

    #[test]
    fn what_breaks_the_protocol_is_told() {
        for (bytes, told) in [
            (&b"*1025\r\n"[..], "Protocol error: invalid multibulk length"),
            (b"*x\r\n", "Protocol error: invalid multibulk length"),
            (b"*1\r\n$1048577\r\n", "Protocol error: invalid bulk length"),
            (b"*1\r\n$-1\r\n", "Protocol error: invalid bulk length"),
            (b"*1\r\nPING\r\n", "Protocol error: expected '$'"),
            (b"*1\r\n$4\r\nPINGxx", "Protocol error: expected CRLF behind a bulk string"),
            (b"POST / HTTP/1.1\r\n", "Protocol error: this is no server of web pages"),
            (b"hOsT: 127.0.0.1:6379\r\n", "Protocol error: this is no server of web pages"),
        ] {
            let mut requests = Requests::default();
            requests.extend(bytes);
            assert_eq!(taken(&mut requests), Err(Wrong(told)), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn lines_are_requests_too() {
        let mut requests = Requests::default();
        requests.extend(b"\r\nSET  key value\n*0\r\nPING\r\nPI");
        let all = taken(&mut requests).expect("it is sound");
        assert_eq!(all, [vec![&b"SET"[..], b"key", b"value"], vec![&b"PING"[..]]]);
        assert!(!requests.is_empty());
    }
}
