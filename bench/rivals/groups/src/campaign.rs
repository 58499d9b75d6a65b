//! Every engine, in rounds, on the same keys; and that all of them have counted the same.

use std::process::Command;

use serde_json::{Value, json};

use crate::Failure;
use crate::args::CampaignArgs;
use crate::engines::{Home, Setting};
use crate::inputs::Input;
use crate::meter::{self, Measured};
use crate::tally::Tally;
use crate::wheels::{self, Converted};

/// How it ended.
pub(crate) enum Outcome {
    Agreed,
    /// An engine did not count, or not right; a line tells.
    Failed,
}

pub(crate) fn run(args: &CampaignArgs) -> Result<Outcome, Failure> {
    let mut settings = if args.engines.is_empty() { Setting::all(args.kind) } else { args.engines.clone() };
    let input = Input::make(args)?;
    let mut converted = None;
    if settings.iter().any(|setting| setting.home == Home::Wheel) {
        match wheels::python() {
            Some(python) => converted = Some(Converted::make(python, args.kind, &input)?),
            None => settings.retain(|setting| {
                let stays = setting.home == Home::Own;
                if !stays {
                    tell(args, setting, &json!({ "type": "skipped", "reason": wheels::MISSING }));
                }
                stays
            }),
        }
    }
    let mut first = None;
    let mut outcome = Outcome::Agreed;
    for _ in 0..args.repeat {
        for setting in &settings {
            let measured = count(args, setting, &input, converted.as_ref()).and_then(|measured| {
                check(&measured.told.tally, args.adds.get(), &mut first).map(|()| measured)
            });
            match measured {
                Ok(measured) => tell(args, setting, &line(&measured, args.adds.get())),
                Err(error) => {
                    tell(args, setting, &json!({ "type": "failure", "reason": error.to_string() }));
                    outcome = Outcome::Failed;
                }
            }
        }
    }
    Ok(outcome)
}

fn count(
    args: &CampaignArgs,
    setting: &Setting,
    input: &Input,
    converted: Option<&Converted>,
) -> Result<Measured, Failure> {
    match (setting.home, converted) {
        (Home::Wheel, Some(converted)) => meter::measure(&mut converted.command(setting)),
        (Home::Wheel, None) => Err(wheels::MISSING.into()),
        (Home::Own, _) => {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["child", "--engine", &setting.to_string(), "--kind", args.kind.name()]);
            command.args(["--key-bytes-max", &input.key_bytes_max.to_string()]);
            command.args(["--adds", &args.adds.to_string(), "--file"]).arg(&input.path);
            meter::measure(&mut command)
        }
    }
}

/// Against what was added, and against the first answer; one with a checksum becomes the first.
fn check(tally: &Tally, adds: u64, first: &mut Option<Tally>) -> Result<(), Failure> {
    if tally.counted != adds {
        return Err(format!("{adds} adds, and {} counted", tally.counted).into());
    }
    if let Some(reason) = first.as_ref().and_then(|first| tally.differs(first)) {
        return Err(reason.into());
    }
    if first.as_ref().is_none_or(|first| first.checksum.is_none()) {
        *first = Some(tally.clone());
    }
    Ok(())
}

fn line(measured: &Measured, adds: u64) -> Value {
    let told = &measured.told;
    let (adds, groups) = (adds as f64, told.tally.groups as f64);
    json!({
        "type": "groups",
        "phase": "group",
        "version": told.version,
        "groups": told.tally.groups,
        "seconds": told.seconds,
        "adds_per_second": adds / told.seconds,
        "cpu_seconds_per_million": told.cpu_seconds / adds * 1e6,
        "bytes_per_group": (measured.peak_bytes - measured.base_bytes) as f64 / groups,
        "adding_seconds": told.adding_seconds,
        "cpu_seconds": told.cpu_seconds,
        "stage_cpu_seconds": told.stages,
        "base_anonymous_bytes": measured.base_bytes,
        "peak_anonymous_bytes": measured.peak_bytes,
        "checksum": told.tally.checksum.map(|checksum| format!("{checksum:016x}")),
    })
}

/// A line about one engine.
fn tell(args: &CampaignArgs, setting: &Setting, what: &Value) {
    let mut line = json!({
        "workload": args.name.as_deref().unwrap_or(args.kind.name()),
        "engine": setting.to_string(),
        "threads": setting.threads,
        "adds": args.adds,
    });
    for (name, value) in what.as_object().into_iter().flatten() {
        line[name] = value.clone();
    }
    println!("{line}");
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tally::Tally;

    #[test]
    fn answers_are_held_against_the_adds_and_the_first_with_a_checksum() {
        let of = |groups, counted, checksum| Tally { groups, counted, checksum };
        let mut first = None;
        assert!(check(&of(3, 9, Some(1)), 10, &mut first).is_err());
        check(&of(3, 10, None), 10, &mut first).unwrap();
        assert!(check(&of(4, 10, Some(1)), 10, &mut first).is_err());
        check(&of(3, 10, Some(1)), 10, &mut first).unwrap();
        check(&of(3, 10, None), 10, &mut first).unwrap();
        assert!(check(&of(3, 10, Some(2)), 10, &mut first).is_err());
    }
}
