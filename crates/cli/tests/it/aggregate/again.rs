//! Stores that are come back to: in another layout, without their groups, with files that were left.

use crate::tool::Folder;

/// The order of the output was that of the keys' hashes.
#[test]
fn groups_of_a_store_in_hash_order_are_shown_in_the_order_of_their_keys() {
    let folder = Folder::new("again-layout");
    let rows: String = (0..40).map(|number| format!("key{number:02}\n")).collect();
    std::fs::write(folder.path("f.csv"), format!("k\n{rows}")).unwrap();
    let before = folder.ok("aggregate --store db --by column:k f.csv");
    folder.ok("layout db groups wb-tree");
    assert_eq!(folder.ok("aggregate --store db"), before);
}

/// The inputs of the groups stayed behind, so that nothing was ever counted again, in silence.
#[test]
fn groups_that_are_destroyed_can_be_counted_again() {
    let folder = Folder::new("again-destroyed");
    std::fs::write(folder.path("f.csv"), "k\na\nb\n").unwrap();
    let shown = folder.ok("aggregate --store db --by column:k f.csv");
    folder.ok("destroy db groups");
    assert_eq!(folder.ok("aggregate --store db --by column:k f.csv"), shown);
    folder.ok("destroy db groups");
    assert_eq!(
        folder.ok("aggregate --store db --by column:k --fn max_text:k f.csv"),
        "k\tmax_text:k\na\ta\nb\tb\n"
    );
}

/// A table of inputs whose groups went in another way, as those of a library's program do.
#[test]
fn a_store_without_its_groups_says_so() {
    let folder = Folder::new("again-without");
    std::fs::write(folder.path("f.csv"), "k\na\nb\n").unwrap();
    folder.ok("aggregate --store db --by column:k f.csv");
    let db = forebay::Database::open(folder.path("db"), forebay::Options::default()).unwrap();
    db.drop_table("groups").unwrap();
    db.close().unwrap();
    folder.run("aggregate --store db").refused(1, &["groups.inputs"]);
    folder.run("aggregate --store db --by column:k f.csv").refused(1, &["groups.inputs"]);
}

/// It was noted as read to its end, so that nothing ever told of its last record.
#[test]
fn a_read_that_is_cut_off_is_malformed_with_final() {
    let folder = Folder::new("again-final");
    std::fs::write(folder.path("f.fastq"), "@one\nACGT\n+\nIIII\n@two\nACG").unwrap();
    let left = folder.run("aggregate --store db --by kmer:3 f.fastq");
    assert!(left.code == 0 && left.stderr.contains("no end yet"), "{}", left.stderr);
    let left = folder.run("aggregate --store db f.fastq");
    assert!(left.code == 0 && left.stderr.contains("no end yet"), "{}", left.stderr);
    folder.run("aggregate --store db --final f.fastq").refused(1, &["f.fastq"]);
    // It goes on where it was left.
    std::fs::write(folder.path("f.fastq"), "@one\nACGT\n+\nIIII\n@two\nACGG\n+\nIIII\n").unwrap();
    assert_eq!(folder.ok("aggregate --store db --final f.fastq"), "ACG\t3\nCCG\t1\n");
}

/// Anybody could write there, and the next count was wrong or failed.
#[test]
fn what_tells_the_inputs_of_groups_is_written_by_counting_alone() {
    let folder = Folder::new("again-guarded");
    std::fs::write(folder.path("f.csv"), "k\na\nb\n").unwrap();
    folder.ok("aggregate --store db --by column:k f.csv");
    let told = ["`groups.inputs`", "counted into `groups`", "aggregate --store"];
    for words in [
        "put db groups.inputs shape x",
        "delete db groups.inputs shape",
        "delete db groups.inputs --prefix s",
        "load db groups.inputs f.csv",
        "load db groups.inputs f.csv --sorted --format lines",
    ] {
        folder.run(words).refused(1, &told);
    }
    folder.ok("aggregate --store db f.csv");
    // Others may be called so.
    folder.ok("put db my.inputs a b");
    folder.ok("delete db my.inputs a");
}

/// It went with the table of that name without the ending, whatever the two kept; nobody could write to it any more once
/// it had a key `shape`; and groups took it for their own.
#[test]
fn a_table_of_ones_own_may_be_called_as_inputs_are() {
    let folder = Folder::new("again-own");
    std::fs::write(folder.path("f.csv"), "k\na\n").unwrap();
    folder.ok("put db jobs.inputs a b");
    let refused = folder.run("aggregate --store db --table jobs --by column:k f.csv");
    refused.refused(1, &["`jobs.inputs`", "name another --table"]);
    assert!(!refused.stderr.contains("destroy"), "{refused:?}");
    folder.ok("put db jobs.inputs shape round");
    folder.ok("put db jobs.inputs size 3");
    folder.ok("put db jobs k v");
    folder.ok("destroy db jobs");
    assert_eq!(folder.ok("get db jobs.inputs a shape size"), "b\nround\n3\n");
    // Nor is it the groups' where they have none, whatever its keys are called.
    folder.ok("aggregate --store db --by column:k f.csv");
    folder.ok("destroy db groups.inputs");
    for key in ["shape", "rescued", "size"] {
        folder.ok(&format!("put db groups.inputs {key} 3"));
    }
    folder.ok("destroy db groups");
    assert_eq!(folder.ok("get db groups.inputs rescued shape size"), "3\n3\n3\n");
}

/// It was called packed, and was never counted, where a new store counted it.
#[test]
fn what_is_appended_to_text_is_text() {
    let folder = Folder::new("again-appended");
    std::fs::write(folder.path("f.csv"), "k\na\n").unwrap();
    folder.ok("aggregate --store db --by column:k f.csv");
    std::fs::write(folder.path("f.csv"), "k\na\nBZh91AY\n").unwrap();
    assert_eq!(folder.ok("aggregate --store db f.csv"), "k\tcount\nBZh91AY\t1\na\t1\n");
}
