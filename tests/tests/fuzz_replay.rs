//! Everything that fuzzing kept, and every command and payload known here, must still hold.

use std::fs;
use std::path::Path;

use cmdgate_tests::fuzz::TARGETS;
use cmdgate_tests::workspace;

fn files_below(directory: &Path, found: &mut Vec<Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, found);
        } else {
            found.push(fs::read(&path).unwrap());
        }
    }
}

// contract: X4
#[test]
fn the_kept_inputs_hold() {
    for (name, target) in TARGETS {
        let mut inputs = Vec::new();
        files_below(&workspace().join("fuzz/corpus").join(name), &mut inputs);
        assert!(inputs.len() >= 50, "{name}: {} inputs only", inputs.len());
        for input in &inputs {
            target(input);
        }
    }
}

#[test]
fn every_known_command_and_payload_holds_for_every_target() {
    let mut inputs = Vec::new();
    files_below(&workspace().join("tests/data"), &mut inputs);
    let lines: Vec<Vec<u8>> =
        inputs.iter().flat_map(|file| file.split(|byte| *byte == b'\n').map(<[u8]>::to_vec)).collect();
    let commands = lines
        .iter()
        .filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok())
        .filter_map(|row| Some(row.get("command")?.as_str()?.as_bytes().to_vec()));
    let all: Vec<Vec<u8>> = commands.chain(inputs).collect();
    assert!(all.len() > 1000, "{}", all.len());
    for (_, target) in TARGETS {
        for input in &all {
            target(input);
        }
    }
}
