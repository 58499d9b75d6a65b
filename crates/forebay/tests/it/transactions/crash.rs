//! Crashes and faults amid transactions: what was acknowledged is there, all of it; what was not is there whole, or not at
//! all; and nobody is told of a conflict where the disk is to blame.

use std::sync::Arc;

use forebay::{Database, Durability, Error, Layout, OrderedTable, Result, Table};
use forebay_env::fs::{CrashFs, FaultyFs, MemoryFs};
use forebay_env::{Env, FileSystem, Rng};

use super::{number, options};

const ACCOUNTS: u64 = 6;
const TOTAL: i64 = 600;

struct Bank {
    db: Database,
    hashed: Table,
    ordered: OrderedTable,
}

impl Bank {
    fn open(env: &Env) -> Result<Self> {
        let db = Database::open("/db", options(env))?;
        let hashed = db.table("hashed").open()?;
        let ordered = db.table("ordered").layout(Layout::leveling(3)).open_ordered()?;
        Ok(Self { db, hashed, ordered })
    }

    /// One has all.
    fn found(&self) -> Result<()> {
        self.db.transaction(|tx| {
            tx.set_durability(Durability::Disk);
            tx.put(&self.hashed, "0", TOTAL.to_le_bytes());
            Ok(())
        })
    }

    /// Moves money from an account of one table to one of the other, and counts that.
    fn transfer(&self, rng: &mut Rng, durability: Durability) -> Result<i64> {
        let (from, to) = (rng.below(ACCOUNTS).to_string(), rng.below(ACCOUNTS).to_string());
        let amount = rng.below(50) as i64;
        self.db.transaction(|tx| {
            tx.set_durability(durability);
            let (mut source, mut target) = (&self.hashed, &*self.ordered);
            if amount % 2 == 0 {
                (source, target) = (target, source);
            }
            let balance = number(tx.get(source, &from)?);
            let moved = amount.min(balance);
            tx.put(source, &from, (balance - moved).to_le_bytes());
            let balance = number(tx.get(target, &to)?);
            tx.put(target, &to, (balance + moved).to_le_bytes());
            let transfers = number(tx.get(&self.hashed, "transfers")?) + 1;
            tx.put(&self.hashed, "transfers", transfers.to_le_bytes());
            // So that buffers get full.
            tx.put(&self.ordered, format!("~{}", transfers % 7), vec![7; 200]);
            Ok(transfers)
        })
    }

    /// How many transfers there were, where the sum is right.
    fn transfers(&self) -> Result<i64> {
        let mut total = 0;
        for account in 0..ACCOUNTS {
            for table in [&self.hashed, &*self.ordered] {
                total += number(table.get(account.to_string())?);
            }
        }
        assert_eq!(total, TOTAL, "money was made, or lost");
        Ok(number(self.hashed.get("transfers")?))
    }
}

/// The power, or the process alone, is lost at a file operation of each.
#[test]
fn what_was_committed_survives_whole() {
    for seed in 0..120 {
        println!("seed {seed}");
        let (fs, mut rng) = (CrashFs::new(seed), Rng::new(seed));
        let env = Env::simulated(fs.clone(), seed);
        let bank = Bank::open(&env).unwrap();
        bank.found().unwrap();
        fs.crash_at(fs.operations() + 1 + rng.below(120));
        let only_process = seed % 3 == 0;
        let (mut acknowledged, mut tried) = (0, 0);
        for _ in 0..200 {
            let durability = [Durability::Os, Durability::Disk][rng.index(2)];
            tried += 1;
            match bank.transfer(&mut rng, durability) {
                Ok(transfers) if only_process || durability == Durability::Disk => acknowledged = transfers,
                Ok(_) => {}
                Err(error) => {
                    assert!(fs.is_off() && !error.is_conflict(), "{error}");
                    break;
                }
            }
            env.jobs.step_some(rng.index(4));
        }
        let left = if only_process { fs.process_cycle() } else { fs.power_cycle() };
        env.jobs.abandon();
        drop(bank);
        let bank = Bank::open(&Env::simulated(left, seed)).unwrap();
        let transfers = bank.transfers().unwrap();
        assert!((acknowledged..=tried).contains(&transfers), "{transfers} of {acknowledged} to {tried}");
        assert_eq!(bank.transfer(&mut rng, Durability::Os).unwrap(), transfers + 1);
    }
}

/// A fault at each file operation: an error is told as what it is, and all goes on.
#[test]
fn faults_are_no_conflicts() {
    for kind in ["no-space", "io-error"] {
        for at in 1..80 {
            let fs = FaultyFs::new(MemoryFs::new());
            let env = Env::simulated(Arc::clone(&fs) as Arc<dyn FileSystem>, 1);
            let bank = Bank::open(&env).unwrap();
            bank.found().unwrap();
            fs.rule(&format!("any * #{at} {kind}")).unwrap();
            let mut rng = Rng::new(at);
            for _ in 0..60 {
                match bank.transfer(&mut rng, Durability::Os) {
                    Ok(_) => {}
                    Err(error @ Error::Conflict(_)) => panic!("{error}"),
                    Err(_) => assert!(fs.fired() > 0),
                }
                env.jobs.step_some(rng.index(4));
            }
            fs.clear();
            bank.transfers().unwrap();
        }
    }
}
