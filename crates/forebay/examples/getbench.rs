//! Throwaway: rates of lookups.
use forebay::{Batch, Database, Durability, Options};
use std::time::Instant;

fn mix(mut w: u64) -> u64 {
    w = w.wrapping_add(0x9e3779b97f4a7c15);
    w ^= w >> 30;
    w = w.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    w ^= w >> 27;
    w = w.wrapping_mul(0x94d0_49bb_1331_11eb);
    w ^ (w >> 31)
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let dir = &a[2];
    let num = |i: usize, d: u64| a.get(i).and_then(|s| s.parse().ok()).unwrap_or(d);
    let n: u64 = num(3, 20_000_000);
    let memory = num(4, 512) << 20;
    let value = num(5, 8) as usize;
    let ordered = a.get(7).is_some_and(|s| s == "ordered");
    #[allow(clippy::disallowed_methods)]
    let now = Instant::now;
    let db = Database::open(dir, Options::default().memory_limit(memory)).unwrap();
    let open = || -> forebay::Table {
        if ordered {
            (*db.table("t").layout(forebay::Layout::write_buffer_ordered()).open_ordered().unwrap()).clone()
        } else {
            db.table("t").open().unwrap()
        }
    };
    let table = open();
    let key = |i: u64| mix(i).to_le_bytes();
    match a[1].as_str() {
        "load" => {
            let mut batch = Batch::new();
            let start = now();
            let mut val = vec![7u8; value];
            for i in 0..n {
                let m = val.len().min(8);
                val[..m].copy_from_slice(&i.to_le_bytes()[..m]);
                batch.put(&table, &key(i), &val);
                if batch.len() == 1000 {
                    db.write(&mut batch, Durability::Os).unwrap();
                }
            }
            db.write(&mut batch, Durability::Os).unwrap();
            println!("load {:.2} s", start.elapsed().as_secs_f64());
            db.flush().unwrap();
            println!("{}", db.stats());
            db.close().unwrap();
        }
        mode => {
            let count: u64 = num(6, 1_000_000);
            let (what, group) = match mode.split_once(':') {
                Some((w, g)) => (w, g.parse::<usize>().unwrap()),
                None => (mode, 1),
            };
            let hot = what == "hot";
            let pick = |i: u64| match what {
                "present" => ((mix(i ^ 0xabcdef) as u128 * n as u128) >> 64) as u64,
                "hot" => mix(i % 10_000) % n,
                _ => n + (1 << 40) + i,
            };
            let keys: Vec<[u8; 8]> = (0..count).map(|i| key(pick(i))).collect();
            for round in 0..num(8, 3) {
                let before = db.stats();
                let (u0, start) = (cpu(), now());
                let mut times: Vec<f64> = Vec::new();
                let mut last = now();
                let mut found = 0u64;
                for big in keys.chunks(1024) {
                    if group == 1 {
                        for k in big {
                            found += table.get(k).unwrap().is_some() as u64;
                        }
                    } else {
                        for ks in big.chunks(group) {
                            found +=
                                table.multi_get(ks).unwrap().iter().filter(|v| v.is_some()).count() as u64;
                        }
                    }
                    let t = now();
                    times.push((t - last).as_nanos() as f64 / big.len() as f64);
                    last = t;
                }
                let (s, c) = (start.elapsed().as_secs_f64(), cpu() - u0);
                let st = db.stats();
                println!(
                    "{mode} round {round}: {:.3} M/s wall, {:.0} ns wall, {:.0} ns cpu a get (min {:.0} p10 {:.0} p50 {:.0}); found {found}; reads/get {:.4}; cache hits/get {:.3}; probes/get {:.1}; false/get {:.4}; mem B/rec {:.3}",
                    count as f64 / s / 1e6,
                    s * 1e9 / count as f64,
                    c * 1e9 / count as f64,
                    {
                        times.sort_by(f64::total_cmp);
                        times[0]
                    },
                    times[times.len() / 10],
                    times[times.len() / 2],
                    (st.device_reads - before.device_reads) as f64 / count as f64,
                    (st.cache_hits - before.cache_hits) as f64 / count as f64,
                    (st.filter_probes - before.filter_probes) as f64 / count as f64,
                    (st.filter_false_positives - before.filter_false_positives) as f64 / count as f64,
                    st.memory_bytes_per_record
                );
            }
            let _ = hot;
        }
    }
}
fn cpu() -> f64 {
    let t = std::fs::read_to_string(
        "/proc/self/task/".to_string() + &std::process::id().to_string() + "/schedstat",
    )
    .unwrap();
    t.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
}
