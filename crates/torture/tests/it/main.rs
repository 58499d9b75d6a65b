//! Slices of the campaigns of kills and of readers, from a fixed seed. The others need root, or time: `make torture`.

use std::process::Command;

#[test]
fn nothing_that_was_acknowledged_is_lost_in_a_kill() {
    for layout in ["wb-tree", "leveling", "range-merge", "range-merge:c=3", "jungle"] {
        let arguments = ["kill", "--rounds", "4", "--seed", "7", "--layout", layout];
        let output = Command::new(env!("CARGO_BIN_EXE_torture")).args(arguments).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
        assert!(told.contains("4 kills"), "{told}");
    }
}

#[test]
fn readers_see_what_is_right_whoever_is_killed_beside_them() {
    for layout in ["wb-tree", "leveling", "range-merge", "range-merge:c=3", "jungle"] {
        let arguments = ["readers", "--rounds", "6", "--seed", "7", "--layout", layout];
        let output = Command::new(env!("CARGO_BIN_EXE_torture")).args(arguments).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
        assert!(told.contains("all right"), "{told}");
    }
}
