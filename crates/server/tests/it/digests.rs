//! Digests: as few values as stand by themselves are answered exactly, and of many the answers are near the true ones.

use forebay_server::Config;

use crate::client::{Client, Got, Running};

fn numbers(got: Got) -> Vec<f64> {
    let Got::Array(all) = got else { panic!("{got:?} is no array") };
    all.into_iter().map(number).collect()
}

fn number(got: Got) -> f64 {
    match got {
        Got::Bulk(bytes) => String::from_utf8(bytes).expect("a text").parse().expect("a number"),
        Got::Int(number) => number as f64,
        other => panic!("{other:?} is no number"),
    }
}

fn refused(got: Got, part: &str) {
    assert!(matches!(&got, Got::Error(text) if text.contains(part)), "{got:?} is no error with `{part}`");
}

fn ask(client: &mut Client, begin: &str, values: &[f64]) -> Got {
    let values = values.iter().map(|value| value.to_string());
    client.ask(&begin.split(' ').map(String::from).chain(values).collect::<Vec<_>>().join(" "))
}

/// The examples of the manual of Redis.
#[test]
fn few_values_are_answered_exactly() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    assert_eq!(client.ask("TDIGEST.CREATE s COMPRESSION 1000"), Got::ok());
    assert_eq!(client.ask("TDIGEST.ADD s 10 20 30 40 50 60"), Got::ok());
    for (line, expected) in [
        ("TDIGEST.RANK s 0 10 20 30 40 50 60 70", vec![-1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        ("TDIGEST.REVRANK s 0 10 20 30 40 50 60 70", vec![6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0, -1.0]),
        ("TDIGEST.BYRANK s 0 1 5 6", vec![10.0, 20.0, 60.0, f64::INFINITY]),
        ("TDIGEST.BYREVRANK s 0 1 5 6", vec![60.0, 50.0, 10.0, f64::NEG_INFINITY]),
        ("TDIGEST.CDF s 0 10 35 60 61", vec![0.0, 0.5 / 6.0, 0.5, 5.5 / 6.0, 1.0]),
        ("TDIGEST.QUANTILE s 0 0.5 1", vec![10.0, 40.0, 60.0]),
    ] {
        assert_eq!(numbers(client.ask(line)), expected, "{line}");
    }
    client.ask("TDIGEST.CREATE t");
    client.ask("TDIGEST.ADD t 1 2 2 3 3 3 4 4 4 4 5 5 5 5 5");
    let shares = client.ask("TDIGEST.QUANTILE t 0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1");
    assert_eq!(numbers(shares), [1.0, 2.0, 3.0, 3.0, 4.0, 4.0, 4.0, 5.0, 5.0, 5.0, 5.0]);
    assert_eq!([client.ask("TDIGEST.MIN t"), client.ask("TDIGEST.MAX t")], ["1", "5"].map(Got::bulk));
    assert_eq!(client.ask("TDIGEST.TRIMMED_MEAN s 0.2 0.8"), Got::bulk("35"));
    assert_eq!(client.ask("TYPE t"), Got::Simple("TDIS-TYPE".into()));
    assert_eq!(client.ask("TDIGEST.RESET t"), Got::ok());
    for line in ["TDIGEST.MIN t", "TDIGEST.MAX t", "TDIGEST.TRIMMED_MEAN t 0 1"] {
        assert_eq!(client.ask(line), Got::bulk("nan"), "{line}");
    }
    assert_eq!(client.ask("TDIGEST.RANK t 1"), Got::Array(vec![Got::Int(-2)]));
    assert_eq!(client.ask("TDIGEST.QUANTILE t 0.5"), Got::Array(vec![Got::bulk("nan")]));
}

#[test]
fn what_is_no_digest_or_number_is_refused() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    client.ask("SET text 1");
    client.ask("TDIGEST.CREATE t");
    for (line, error) in [
        ("TDIGEST.CREATE t", "already exists"),
        ("TDIGEST.CREATE u COMPRESSION 0", "positive integer"),
        ("TDIGEST.CREATE u COMPRESSION x", "error parsing compression"),
        ("TDIGEST.CREATE u COMPRESSION 10001", "at most 10000"),
        ("TDIGEST.ADD u 1", "does not exist"),
        ("TDIGEST.ADD t 1 x", "error parsing val"),
        ("TDIGEST.ADD t nan", "error parsing val"),
        ("TDIGEST.ADD t inf", "finite"),
        ("TDIGEST.ADD text 1", "WRONGTYPE"),
        ("TDIGEST.QUANTILE t 1.1", "should be in [0,1]"),
        ("TDIGEST.BYRANK t -1", "non negative"),
        ("TDIGEST.TRIMMED_MEAN t 0.5 0.5", "should be lower"),
        ("TDIGEST.MERGE u 0 t", "positive integer"),
        ("TDIGEST.MERGE u 2 t", "wrong number"),
        ("TDIGEST.MERGE u 1 missing", "does not exist"),
        ("TDIGEST.MERGE u 1 t SIDEWAYS", "syntax"),
        ("GET t", "WRONGTYPE"),
    ] {
        refused(client.ask(line), error);
    }
    assert_eq!(client.ask("EXISTS u"), Got::Int(0));
}

/// The next of a row of numbers that look drawn, from 0 to 1.
fn draw(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 11) as f64 / (1u64 << 53) as f64
}

/// How far the share of what is below an answer is from the share that was asked.
fn error_of(sorted: &[f64], share: f64, answer: f64) -> f64 {
    let count = sorted.len() as f64;
    let below = sorted.partition_point(|value| *value < answer) as f64 / count;
    let not_above = sorted.partition_point(|value| *value <= answer) as f64 / count;
    (below - share).max(share - not_above).max(0.0)
}

const SHARES: [f64; 7] = [0.001, 0.01, 0.25, 0.5, 0.75, 0.99, 0.999];

fn check(client: &mut Client, key: &str, values: &mut [f64], most: f64) {
    values.sort_by(f64::total_cmp);
    let answers = numbers(ask(client, &format!("TDIGEST.QUANTILE {key}"), &SHARES));
    for (share, answer) in SHARES.into_iter().zip(answers) {
        // At both ends it is nearer.
        let most = most * 4.0 * (share * (1.0 - share)).max(0.01);
        let error = error_of(values, share, answer);
        assert!(error < most, "{key} at {share}: {answer} is {error} off");
        let rank = numbers(ask(client, &format!("TDIGEST.CDF {key}"), &[answer]))[0];
        assert!((rank - share).abs() < 2.0 * most, "{key}: the share below {answer} is {share}, not {rank}");
    }
    let ends = [client.ask(&format!("TDIGEST.MIN {key}")), client.ask(&format!("TDIGEST.MAX {key}"))];
    assert_eq!(ends.map(number), [values[0], values[values.len() - 1]], "they are exact");
}

#[test]
fn many_values_are_answered_within_the_error() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    let mut seed = 11;
    let (mut all, mut parts) = (Vec::new(), Vec::new());
    for (key, batch) in [("one", 1), ("some", 37), ("many", 5000)] {
        client.ask(&format!("TDIGEST.CREATE {key} COMPRESSION 100"));
        let mut values: Vec<f64> = (0..10_000).map(|_| draw(&mut seed).powi(5) * 1000.0 - 3.0).collect();
        for some in values.chunks(batch) {
            assert_eq!(ask(&mut client, &format!("TDIGEST.ADD {key}"), some), Got::ok());
        }
        all.extend_from_slice(&values);
        check(&mut client, key, &mut values, 0.01);
        parts.push(key);
    }
    assert_eq!(client.ask("TDIGEST.MERGE sum 3 one some many COMPRESSION 200"), Got::ok());
    check(&mut client, "sum", &mut all, 0.01);
    let Got::Array(info) = client.ask("TDIGEST.INFO sum") else { panic!("an array") };
    assert_eq!((&info[1], &info[13]), (&Got::Int(200), &Got::Int(30_000)));
    assert!(matches!(info[5], Got::Int(nodes) if (50..=410).contains(&nodes)), "{info:?}");
    // The target's own count too, but for OVERRIDE.
    client.ask("TDIGEST.MERGE sum 1 one");
    client.ask("TDIGEST.MERGE sum 2 sum sum COMPRESSION 20 OVERRIDE");
    let Got::Array(info) = client.ask("TDIGEST.INFO sum") else { panic!("an array") };
    assert_eq!((&info[1], &info[13]), (&Got::Int(20), &Got::Int(80_000)));
}

/// Sums of the greatest numbers would be beyond all.
#[test]
fn the_greatest_numbers_do_no_harm() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    client.ask("TDIGEST.CREATE t COMPRESSION 10");
    let mut seed = 3;
    for _ in 0..40 {
        let ends: Vec<f64> =
            (0..100).map(|_| if draw(&mut seed) < 0.5 { f64::MIN } else { f64::MAX }).collect();
        assert_eq!(ask(&mut client, "TDIGEST.ADD t", &ends), Got::ok());
        let answers = numbers(client.ask("TDIGEST.QUANTILE t 0 0.01 0.5 0.99 1"));
        assert!(answers.iter().all(|answer| answer.is_finite()), "{answers:?}");
    }
    assert!(number(client.ask("TDIGEST.TRIMMED_MEAN t 0 1")).is_finite());
    // So would be counts, which double each time.
    let ends = (0..64).map(|_| client.ask("TDIGEST.MERGE t 1 t")).find(|got| *got != Got::ok());
    refused(ends.expect("one is refused"), "overflow");
    assert!(numbers(client.ask("TDIGEST.RANK t 0"))[0] > 0.0, "it stays what it was");
}

/// Random commands on few values, held against a sorted row of them.
#[test]
fn digests_are_as_their_model() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    let mut seed = 29;
    let mut models = [Vec::new(), Vec::new()];
    (0..2).for_each(|key| drop(client.ask(&format!("TDIGEST.CREATE d{key} COMPRESSION {}", 10 + key * 90))));
    for step in 0..600 {
        let key = usize::from(draw(&mut seed) < 0.5);
        let value = (draw(&mut seed) * 20.0).floor();
        match (draw(&mut seed) * 12.0) as u32 {
            0 => {
                client.ask(&format!("TDIGEST.RESET d{key}"));
                models[key].clear();
            }
            1 if models[0].len() + models[1].len() < 500 => {
                client.ask(&format!("TDIGEST.MERGE d{key} 1 d{}", 1 - key));
                let more = models[1 - key].clone();
                models[key].extend(more);
            }
            2..=7 if models[key].len() < 400 => {
                let values = [value, value * 0.5];
                assert_eq!(ask(&mut client, &format!("TDIGEST.ADD d{key}"), &values), Got::ok());
                models[key].extend(values);
            }
            _ => {}
        }
        let model = &mut models[key];
        model.sort_by(f64::total_cmp);
        let count = model.len();
        let at = (value as usize).min(count.saturating_sub(1));
        let below = model.partition_point(|one| *one < value);
        let equal = model.partition_point(|one| *one <= value) - below;
        let rank = match (model.first(), model.last()) {
            (None, _) | (_, None) => -2,
            (Some(least), _) if value < *least => -1,
            _ => below as i64 + equal as i64 / 2,
        };
        let got = client.ask(&format!("TDIGEST.RANK d{key} {value}"));
        assert_eq!(got, Got::Array(vec![Got::Int(rank)]), "step {step}");
        if count > 0 {
            let got = numbers(client.ask(&format!("TDIGEST.BYRANK d{key} {at} {count}")));
            assert_eq!(got, [model[at], f64::INFINITY], "step {step}");
            let got = numbers(client.ask(&format!("TDIGEST.BYREVRANK d{key} {at}")));
            assert_eq!(got, [model[count - 1 - at]], "step {step}");
        }
    }
}
