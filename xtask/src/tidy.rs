//! `cargo xtask tidy`: what the compiler does not check about the shape of the project.

use crate::steps::{cargo, root};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Which crates of the workspace a crate may depend on. Dependencies point one way.
const ALLOWED: &[(&str, &[&str])] = &[
    ("cmdgate-lexer", &[]),
    ("cmdgate-classifier", &["cmdgate-lexer"]),
    ("cmdgate-policy", &[]),
    ("cmdgate-executor", &[]),
    ("cmdgate-harness", &["cmdgate-lexer", "cmdgate-classifier", "cmdgate-policy", "cmdgate-executor"]),
];

/// The rows of the contract: letter and how many.
const CONTRACT: &[(char, u32)] = &[('S', 28), ('P', 16), ('H', 6), ('X', 7)];

/// Longest source file, in lines; tables and tests are data and may be longer.
const LONGEST_FILE: usize = 1_200;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

/// Runs every check and fails with the list of what is not as it should be.
pub fn run() -> Result<()> {
    let root = root();
    let mut faults = Vec::new();
    dependencies(&mut faults)?;
    let sources = rust_files(&root)?;
    registry(&root, &mut faults)?;
    let comments = marked_comments(&sources)?;
    contract(&comments, &mut faults);
    promises(&root, &comments, &mut faults)?;
    long_files(&sources, &root, &mut faults)?;
    if faults.is_empty() {
        writeln!(
            io::stdout(),
            "tidy: dependencies, registry, contract rows, promises and file sizes are in order"
        )?;
        return Ok(());
    }
    for fault in &faults {
        writeln!(io::stdout(), "tidy: {fault}")?;
    }
    bail!("{} things are not tidy", faults.len())
}

fn dependencies(faults: &mut Vec<String>) -> Result<()> {
    let output = cargo().args(["metadata", "--no-deps", "--format-version", "1"]).output()?;
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("reading cargo metadata")?;
    for (name, allowed) in ALLOWED {
        let Some(package) = metadata.packages.iter().find(|package| package.name == *name) else {
            faults.push(format!("there is no crate {name}"));
            continue;
        };
        for dependency in &package.dependencies {
            let ours = dependency.name.starts_with("cmdgate-");
            if ours && dependency.kind.is_none() && !allowed.contains(&dependency.name.as_str()) {
                faults.push(format!("{name} must not depend on {}", dependency.name));
            }
        }
    }
    Ok(())
}

/// Every table file is in the registry: a table that is not named there judges nothing.
fn registry(root: &Path, faults: &mut Vec<String>) -> Result<()> {
    let directory = root.join("crates/classifier/src/commands");
    let list = fs::read_to_string(directory.join("mod.rs"))?;
    // What stands between the `mod` lines and the index names every table.
    let all = list.split_once("/// Where each name stands").map_or(list.as_str(), |(before, _)| before);
    for entry in fs::read_dir(&directory)? {
        let path = entry?.path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()).filter(|name| *name != "mod") else {
            continue;
        };
        let text =
            if path.is_dir() { fs::read_to_string(path.join("mod.rs"))? } else { fs::read_to_string(&path)? };
        if text.contains("CommandSpec") && !all.contains(&format!("{name}::")) {
            faults.push(format!("commands/{name} is not in commands::ALL"));
        }
    }
    Ok(())
}

/// The words after `// contract:` and `// promise:` in every source file.
fn marked_comments(sources: &[PathBuf]) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for path in sources {
        let text = fs::read_to_string(path)?;
        for line in text.lines() {
            for (mark, prefix) in [("// contract:", ""), ("// promise:", "promise ")] {
                if let Some((_, rows)) = line.split_once(mark) {
                    let words = rows.split([',', ' ']).map(str::trim).filter(|row| !row.is_empty());
                    found.extend(words.map(|row| format!("{prefix}{row}")));
                }
            }
        }
    }
    Ok(found)
}

fn contract(comments: &BTreeSet<String>, faults: &mut Vec<String>) {
    for (letter, last) in CONTRACT {
        for number in 1..=*last {
            let row = format!("{letter}{number}");
            if !comments.contains(&row) {
                faults.push(format!("no test names the contract row {row}"));
            }
        }
    }
}

/// Every numbered promise of SECURITY.md has a test that names it.
fn promises(root: &Path, comments: &BTreeSet<String>, faults: &mut Vec<String>) -> Result<()> {
    let text = fs::read_to_string(root.join("SECURITY.md")).context("reading SECURITY.md")?;
    let promised = text.split_once("## What is promised").map_or("", |(_, rest)| rest);
    let promised = promised.split("\n## ").next().unwrap_or("");
    let numbers: Vec<u32> = promised
        .lines()
        .filter_map(|line| line.split_once(". "))
        .filter_map(|(number, _)| number.parse().ok())
        .collect();
    if numbers.is_empty() {
        faults.push("SECURITY.md lists no promises under `## What is promised`".to_owned());
    }
    for number in numbers {
        if !comments.contains(&format!("promise {number}")) {
            faults.push(format!("no test names promise {number} of SECURITY.md"));
        }
    }
    Ok(())
}

fn long_files(sources: &[PathBuf], root: &Path, faults: &mut Vec<String>) -> Result<()> {
    for path in sources {
        let shown = path.strip_prefix(root).unwrap_or(path);
        let is_data =
            shown.components().any(|part| part.as_os_str() == "commands" || part.as_os_str() == "tests");
        let lines = fs::read_to_string(path)?.lines().count();
        if !is_data && lines > LONGEST_FILE {
            faults.push(format!("{} has {lines} lines: split it by subject", shown.display()));
        }
    }
    Ok(())
}

fn rust_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![root.join("crates"), root.join("tests"), root.join("xtask")];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() {
                if path.file_name().is_none_or(|name| name != "target") {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
