//! Groups that were rescued from a damaged database: what is missing is never counted over in silence.

use std::fs;

use super::Draws;
use crate::tool::Folder;

/// A store of two files and a table beside it, of which one bit of one list is flipped, and what was rescued of it.
fn rescued(test: &str, of_groups: bool) -> Folder {
    let folder = Folder::new(test);
    let mut draws = Draws::new(1);
    for name in ["a.csv", "b.csv"] {
        let rows: String = (0..2000).map(|_| format!("key {}\n", draws.below(1000))).collect();
        fs::write(folder.path(name), format!("k\n{rows}")).unwrap();
    }
    folder.ok("aggregate --store db --by column:k a.csv b.csv --out out.csv");
    folder.ok("aggregate --store db --table other --by column:k a.csv --out out.csv");
    rescue_without(&folder, if of_groups { "groups" } else { "groups.inputs" });
    folder
}

/// Flips one bit of a list of the table, and saves what is left.
fn rescue_without(folder: &Folder, table: &str) {
    folder.ok("compact db");
    let lists = fs::read_dir(folder.path("db")).unwrap().map(|entry| entry.unwrap().path());
    let lists: Vec<_> = lists.filter(|path| path.extension().is_some_and(|end| end == "list")).collect();
    let damage = &*format!("table `{table}`");
    for list in &lists {
        let sound = fs::read(list).unwrap();
        let mut bytes = sound.clone();
        bytes[100] ^= 1;
        fs::write(list, &bytes).unwrap();
        if folder.run("verify db").stderr.contains(damage) {
            folder.run("rescue db saved").refused(1, &[damage]);
            return;
        }
        fs::write(list, &sound).unwrap();
    }
    panic!("no list is of {damage}: {lists:?}");
}

/// The groups were short, and the files known: the next run counted nothing of what was lost, and said that all was
/// well.
#[test]
fn groups_that_lost_something_are_not_counted_on_in_silence() {
    for (test, of_groups) in [("rescued-groups", true), ("rescued-inputs", false)] {
        let folder = rescued(test, of_groups);
        let add = "aggregate --store saved a.csv b.csv --top 1";
        folder.run(add).refused(1, &["`groups`", "1 place", "anew", "--despite-losses"]);
        // What is there can be seen, with a word of what is not.
        let on = ["aggregate --store saved", &format!("{add} --despite-losses")];
        for command in ["scan saved groups"].iter().chain(if of_groups { &on[..] } else { &[] }) {
            let seen = folder.run(command);
            assert!(seen.code == 0 && seen.stderr.contains("may be missing"), "{command}: {seen:?}");
        }
        if !of_groups {
            // The one page had also how they were made.
            for command in on {
                let refused = folder.run(command);
                assert!(refused.code == 1 && refused.stderr.contains("nothing tells what"), "{refused:?}");
            }
        }
        // Nothing of the others was lost.
        let again = folder.object("aggregate --store saved --table other a.csv --json");
        assert_eq!((&again["records"], &again["known_files"]), (&0.into(), &1.into()));
        // What was lost is known for as long as the groups are there, also behind a second rescue.
        assert_eq!(folder.run("rescue saved twice").code, 0);
        folder.run("aggregate --store twice a.csv").refused(1, &["--despite-losses"]);
        folder.ok("destroy saved groups");
        folder.ok("aggregate --store saved --by column:k a.csv --out out.csv");
    }
}

/// It was refused: what tells their files was read first, and that was what is damaged.
#[test]
fn groups_whose_inputs_cannot_be_read_are_destroyed() {
    let folder = rescued("rescued-destroyed", false);
    let destroyed = folder.run("destroy db groups");
    assert!(destroyed.code == 0 && destroyed.stderr.contains("`groups.inputs` stays"), "{destroyed:?}");
    folder.ok("destroy db groups.inputs");
    folder.ok("aggregate --store db --by column:k a.csv --out out.csv");
}

/// A record was written into it; and where it kept groups, nothing could be rescued.
#[test]
fn a_table_of_ones_own_that_is_called_as_inputs_are_is_rescued_as_it_is() {
    let rows: String = (0..2000).map(|key| format!("{key},{key}\n")).collect();
    let [load, put] = ["load db own rows.csv", "put db own.inputs rescued mine"];
    let [own, inputs] = ["own", "own.inputs"]
        .map(|table| format!("aggregate --store db --table {table} --by column:1 --out out.csv rows.csv"));
    for (test, commands) in [
        ("rescued-own", vec![load, put]),
        ("rescued-own-groups", vec![load, &inputs[..]]),
        ("rescued-own-beside-groups", vec![&own[..], "destroy db own.inputs", put]),
    ] {
        let folder = Folder::new(test);
        fs::write(folder.path("rows.csv"), &rows).unwrap();
        for command in commands {
            folder.ok(command);
        }
        let kept = folder.ok("scan db own.inputs");
        rescue_without(&folder, "own");
        assert_eq!(folder.ok("scan saved own.inputs"), kept);
    }
}

/// Nor are groups of which nothing tells any more which files are in them.
#[test]
fn groups_without_a_word_of_their_files_are_not_added_to() {
    let folder = Folder::new("rescued-without-inputs");
    fs::write(folder.path("a.csv"), "k\na\n").unwrap();
    folder.ok("aggregate --store db --by column:k a.csv");
    folder.ok("destroy db groups.inputs");
    for _ in 0..2 {
        folder
            .run("aggregate --store db --by column:k a.csv")
            .refused(1, &["`groups`", "nothing tells", "--table"]);
    }
    folder.ok("aggregate --store db --by column:k --table again a.csv");
}

/// A rescue that was killed left a database that looked whole.
#[test]
fn a_rescue_has_its_name_only_once_it_is_whole() {
    let folder = Folder::new("rescued-whole");
    folder.ok("put db t k v");
    folder.ok("put saved.rescuing t old v");
    folder.ok("rescue db saved/");
    assert!(folder.path("saved").is_dir() && !folder.path("saved.rescuing").exists());
    assert_eq!(folder.ok("scan saved t"), "k\tv\n");
    fs::create_dir(folder.path("other.rescuing")).unwrap();
    fs::write(folder.path("other.rescuing/letter"), "dear").unwrap();
    folder.run("rescue db other").refused(1, &["other.rescuing is not a forebay database"]);
}
