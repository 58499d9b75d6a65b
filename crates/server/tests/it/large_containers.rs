//! Containers that are too large to be shown at once.

use forebay_server::Config;

use crate::client::{Got, Running};
use crate::commands::check;

/// Each field that stays comes once by its scan; what is too long for one reply is refused, and nothing else suffers.
#[test]
fn large_ones_are_seen_in_pieces() {
    let server = Running::new(Config { reply_bytes_max: 100_000, ..Config::default() });
    let mut client = server.client();
    for number in 0..3000 {
        client.ask(&format!("HSET h field:{number} {number}"));
        client.ask(&format!("RPUSH l {number}"));
    }
    let (mut cursor, mut seen) = ("0".to_string(), Vec::new());
    loop {
        let Got::Array(answer) = client.ask(&format!("HSCAN h {cursor} COUNT 70")) else { panic!("two") };
        let [Got::Bulk(next), Got::Array(found)] = &answer[..] else { panic!("a cursor and fields") };
        seen.extend(found.chunks(2).map(|pair| format!("{:?}", pair[0])));
        cursor = String::from_utf8_lossy(next).into_owned();
        if cursor == "0" {
            break;
        }
    }
    seen.sort();
    assert_eq!(seen.len(), 3000);
    seen.dedup();
    assert_eq!(seen.len(), 3000);
    let Got::Array(some) = client.ask("HRANDFIELD h 50") else { panic!("fields") };
    assert_eq!(
        some.iter().map(|one| format!("{one:?}")).collect::<std::collections::BTreeSet<_>>().len(),
        50
    );
    check(
        &mut client,
        &[
            ("HGETALL h", "!ERR"),
            ("HLEN h", "3000"),
            ("HRANDFIELD h -9223372036854775807", "!ERR"),
            ("SUNIONSTORE d h", "!WRONGTYPE"),
            ("COPY h d", "!ERR"),
            ("LRANGE l 0 -1", "!ERR"),
            ("LINDEX l 1500", "\"1500\""),
            ("LTRIM l 1400 1402", "OK"),
            ("LRANGE l 0 -1", "[\"1400\" \"1401\" \"1402\"]"),
            ("RPUSH l x", "4"),
            ("LPUSH l y", "5"),
            ("LRANGE l 0 -1", "[\"y\" \"1400\" \"1401\" \"1402\" \"x\"]"),
            ("DEL h l", "2"),
            ("HGETALL h", "[]"),
        ],
    );
    let long = vec![b'x'; 70_000];
    let Got::Error(told) = client.ask_bytes(&[b"HSET", b"h", &long, b"v"]) else { panic!("it is too long") };
    assert!(told.contains("70000 bytes"), "{told}");
}
