//! Bash as the oracle: what the lexer accepts, bash must read in the same way.
//!
//! Generated command lines are lexed, run through a small interpreter of the lexer's tree, and given to bash, in which
//! the programs are functions that report their arguments. Both must see the same calls with the same words. Nothing
//! real can run: the only programs are those functions, `PATH` leads nowhere, and where bubblewrap is installed bash
//! sits in an empty directory of a read-only system without network.
//!
//! `CMDGATE_ORACLE_STRINGS` sets how many strings are generated, `CMDGATE_ORACLE_SEED` which ones.
// contract: X4

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::needless_for_each,
    reason = "the helpers of a test fail by panicking"
)]

#[path = "bash_oracle/bash.rs"]
mod bash;
#[path = "bash_oracle/generate.rs"]
mod generate;
#[path = "bash_oracle/interpret.rs"]
mod interpret;

use bash::Mode;
use cmdgate_lexer::{
    Command, CompoundKind, Grammar, List, MAX_COMMANDS, MAX_DEPTH, MAX_STAGES, Part, RedirectKind, Script,
    Segment, Word, check_invariants, lex,
};
use generate::Random;
use interpret::interpret;
use std::collections::HashSet;
use std::path::Path;

/// How many strings a run generates when nothing else is said.
const STRINGS: usize = 40_000;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What bash did differently from what the tree says, if anything. `None` when the lexer refuses the string or the
/// interpreter cannot say what must happen.
fn difference(source: &str, mode: Mode) -> Option<String> {
    let script = lex(source, Grammar::Sequence).ok()?;
    let expected = interpret(&script, source, mode.null_glob)?;
    let seen = bash::run(&[source], mode).pop()?;
    compare(&expected, seen)
}

fn compare(expected: &[Vec<String>], mut seen: bash::Seen) -> Option<String> {
    if seen.syntax_error {
        return Some("bash calls it a syntax error".into());
    }
    let mut expected = expected.to_vec();
    expected.sort();
    seen.calls.sort();
    (expected != seen.calls).then(|| format!("expected {expected:?}\n  bash did {:?}", seen.calls))
}

/// The shortest string found by leaving out pieces of `source` that still shows a difference.
fn minimise(source: &str, mode: Mode) -> String {
    let mut best: Vec<char> = source.chars().collect();
    let mut size = best.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < best.len() {
            let mut shorter = best.clone();
            shorter.drain(at..(at + size).min(best.len()));
            if difference(&shorter.iter().collect::<String>(), mode).is_some() {
                best = shorter;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    best.into_iter().collect()
}

/// A command line and the calls that bash must make for it.
type Judged = (String, Vec<Vec<String>>);

/// The ways in which bash is run; the last one is slow.
const MODES: [Mode; 4] = [
    Mode { null_glob: false, bytes: false, own_process: false },
    Mode { null_glob: true, bytes: false, own_process: false },
    Mode { null_glob: false, bytes: true, own_process: false },
    Mode { null_glob: false, bytes: false, own_process: true },
];

/// The command lines of `batch` that bash reads differently.
fn differing(mode: Mode, batch: &[Judged]) -> Vec<(Mode, String)> {
    let sources: Vec<&str> = batch.iter().map(|(source, _)| source.as_str()).collect();
    let seen = bash::run(&sources, mode);
    let pairs = batch.iter().zip(seen);
    pairs
        .filter(|((_, expected), seen)| compare(expected, seen.clone()).is_some())
        .map(|((source, _), _)| (mode, source.clone()))
        .collect()
}

#[test]
fn generated_command_lines_are_read_as_bash_reads_them() {
    let seed = setting("CMDGATE_ORACLE_SEED", 1);
    let count = usize::try_from(setting("CMDGATE_ORACLE_STRINGS", STRINGS as u64)).unwrap();
    let mut random = Random::new(seed);
    let mut generated = HashSet::new();
    let mut judged: Vec<Vec<Judged>> = vec![Vec::new(); MODES.len()];
    let mut accepted = 0;
    while generated.len() < count {
        let source = random.command_line();
        if !generated.insert(source.clone()) {
            continue;
        }
        let Ok(script) = lex(&source, Grammar::Sequence) else { continue };
        assert_eq!(check_invariants(&script, &source), Ok(()), "{source:?}");
        // A bash for each command line is slow, so only few get one.
        let mode = if accepted % 32 == 0 { MODES.len() - 1 } else { accepted % (MODES.len() - 1) };
        accepted += 1;
        if let Some(expected) = interpret(&script, &source, MODES[mode].null_glob) {
            judged[mode].push((source, expected));
        }
    }
    let batches: Vec<(Mode, &[Judged])> = MODES
        .iter()
        .zip(&judged)
        .flat_map(|(mode, judged)| judged.chunks(500).map(|batch| (*mode, batch)))
        .collect();
    let failures: Vec<(Mode, String)> = std::thread::scope(|scope| {
        let threads: Vec<_> = batches
            .chunks(batches.len().div_ceil(2).max(1))
            .map(|half| {
                scope.spawn(|| {
                    half.iter().flat_map(|(mode, batch)| differing(*mode, batch)).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let compared: usize = judged.iter().map(Vec::len).sum();
    let words: usize = judged.iter().flatten().flat_map(|(_, calls)| calls).map(Vec::len).sum();
    println!("seed {seed}: {count} strings, {accepted} accepted, {compared} compared, {words} words");
    for (mode, source) in failures.iter().take(8) {
        let small = minimise(source, *mode);
        let what = difference(&small, *mode).unwrap_or_else(|| "only in a batch".into());
        println!("\n{small:?} in {mode:?}\n  {what}\n  from {source:?}");
    }
    let failed = failures.len();
    assert!(failed == 0, "{failed} of {compared} strings differ, see above (seed {seed})");
    assert!(compared > count / 6, "too few strings were compared to mean anything");
}

#[test]
fn what_the_limits_admit_bash_can_parse() {
    let nested = |open: &str, close: &str| format!("{}w{}", open.repeat(MAX_DEPTH), close.repeat(MAX_DEPTH));
    let wide = format!("w{}", " | w".repeat(MAX_STAGES - 2 * MAX_DEPTH - 1));
    let texts = [
        nested("( ", " )"),
        nested("{ ", "; }"),
        nested("w $(", ")"),
        nested("w \"$(", ")\""),
        nested("if ", "; then w; fi"),
        nested("while w; do ", "; done"),
        nested("case w in a) ", ";; esac"),
        nested("for x in a; do ! ", "; done"),
        nested("w | { ", "; }"),
        nested("( ", " )").replace('w', &wide),
        nested("w | { ", "; }").replace("w;", &format!("{wide};")),
        format!("[[ {}w ]]", "! ".repeat(MAX_STAGES - 1)),
        format!("[[ w{} ]]", " && w".repeat(5_000)),
        format!("if w; then w; {} fi", "elif w; then w; ".repeat(MAX_STAGES / 3)),
        format!("case w in {} esac", "a|b) w;; ".repeat(5_000)),
        format!("w{}", "; w".repeat(MAX_COMMANDS - 1)),
        format!("w{}", " && w".repeat(MAX_COMMANDS - 1)),
        format!("w{}", "\nw".repeat(MAX_COMMANDS - 1)),
        format!("w{}", "\n\n\n".repeat(20_000)),
        format!("w{}", " w".repeat(40_000)),
        format!("w{}", " >w".repeat(20_000)),
        format!("{}w", "w=w ".repeat(20_000)),
        format!("w{}\n{}", " <<E".repeat(16), "E\n".repeat(16)),
    ];
    for text in &texts {
        let start: String = text.chars().take(60).collect();
        assert_eq!(lex(text, Grammar::Sequence).map(drop), Ok(()), "{start}");
        let errors = bash::syntax_errors(&[text]);
        assert!(errors.is_empty(), "{start}: {:.200}", errors[0].1);
    }
}

/// The lines of the files in `folders` whose names end in `extension`; folders that are not there are left out.
fn lines(folders: &[&str], extension: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(root.join(folder)).ok()).flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let files = paths.filter(|path| path.extension() == Some(extension.as_ref()));
    files
        .flat_map(|path| std::fs::read_to_string(path).unwrap().lines().map(String::from).collect::<Vec<_>>())
        .collect()
}

/// The command lines of every case that can be found.
fn case_texts() -> Vec<String> {
    let objects = lines(&["../shared/cases", "tests/data"], "jsonl");
    let objects = objects.iter().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut texts: Vec<String> =
        objects.filter_map(|object| object["command"].as_str().map(String::from)).collect();
    texts.extend(lines(&["crates/classifier/cases"], "case").iter().filter_map(|line| judged_line(line)));
    let blocks = lines(&["crates/lexer/cases"], "case").join("\n");
    texts.extend(blocks.split("\n---\n").filter_map(|case| Some(case.split_once("\n=> ")?.0.to_string())));
    texts.sort();
    texts.dedup();
    texts
}

/// The command of a line such as `safe COMMAND`, `escaped: review CODE COMMAND` or `needs CONDITION: safe COMMAND`.
fn judged_line(line: &str) -> Option<String> {
    let line =
        line.strip_prefix("needs ").and_then(|rest| rest.split_once(": ")).map_or(line, |(_, rest)| rest);
    let plain = line.strip_prefix("pipeline: ").unwrap_or(line);
    let (rest, escaped) = plain.strip_prefix("escaped: ").map_or((plain, false), |rest| (rest, true));
    let command = match rest.split_once(' ')? {
        ("safe", command) => command,
        ("review", rest) => rest.split_once(' ')?.1,
        _ => return None,
    };
    let text = |command: &str| command.replace("\\n", "\n").replace("\\t", "\t");
    Some(if escaped { text(command) } else { command.to_string() })
}

/// Every simple command of `list`, those of substitutions included.
fn segments<'s, 'a>(list: &'s List<'a>, found: &mut Vec<&'s Segment<'a>>) {
    for stage in list.items.iter().flat_map(|item| &item.pipeline.stages) {
        let redirects = match stage {
            Command::Simple(segment) => {
                segment.words.iter().for_each(|word| inside(word, found));
                segment.assignments.iter().for_each(|assignment| inside(&assignment.value, found));
                found.push(segment);
                &segment.redirects
            }
            Command::Compound(compound) => {
                match &compound.kind {
                    CompoundKind::Subshell(list) | CompoundKind::Group(list) => segments(list, found),
                    CompoundKind::For { words, body, .. } => {
                        words.iter().for_each(|word| inside(word, found));
                        segments(body, found);
                    }
                    CompoundKind::While { condition, body, .. } => {
                        segments(condition, found);
                        segments(body, found);
                    }
                    CompoundKind::If { branches, otherwise } => {
                        for (condition, body) in branches {
                            segments(condition, found);
                            segments(body, found);
                        }
                        otherwise.iter().for_each(|body| segments(body, found));
                    }
                    CompoundKind::Case { word, arms } => {
                        inside(word, found);
                        for (patterns, body) in arms {
                            patterns.iter().for_each(|word| inside(word, found));
                            body.iter().for_each(|body| segments(body, found));
                        }
                    }
                    CompoundKind::Conditional(words) => words.iter().for_each(|word| inside(word, found)),
                    CompoundKind::Arithmetic(_) => {}
                }
                &compound.redirects
            }
        };
        for redirect in redirects {
            match &redirect.kind {
                RedirectKind::Read(word)
                | RedirectKind::ReadWrite(word)
                | RedirectKind::HereString(word)
                | RedirectKind::HereDocument { body: word, .. }
                | RedirectKind::Write { target: word, .. }
                | RedirectKind::WriteBoth { target: word, .. } => inside(word, found),
                RedirectKind::Duplicate(_) | RedirectKind::Close => {}
            }
        }
    }
}

fn inside<'s, 'a>(word: &'s Word<'a>, found: &mut Vec<&'s Segment<'a>>) {
    for part in word.parts() {
        if let Part::Substitution { list, .. } = part {
            segments(list, found);
        }
    }
}

/// The words of `segment` as they stand in the source, its redirections blanked out, and the words themselves; `None`
/// when not all of them are literal.
fn argument_text(segment: &Segment<'_>, source: &str) -> Option<(String, Vec<String>)> {
    let words: Option<Vec<String>> =
        segment.words.iter().map(|word| word.literal().map(String::from)).collect();
    let start = segment.words.first()?.span.start as usize;
    let mut text = source.as_bytes()[start..segment.span.end as usize].to_vec();
    for redirect in &segment.redirects {
        let range = redirect.span.range();
        if range.start >= start {
            text[range.start - start..range.end - start].fill(b' ');
        }
    }
    Some((String::from_utf8(text).unwrap(), words?))
}

#[test]
fn the_words_of_every_case_are_those_that_bash_passes() {
    let texts = case_texts();
    let accepted: Vec<(&String, Script<'_>)> =
        texts.iter().filter_map(|text| Some((text, lex(text, Grammar::Sequence).ok()?))).collect();
    let mut probes = HashSet::new();
    for (text, script) in &accepted {
        let mut found = Vec::new();
        segments(&script.list, &mut found);
        probes.extend(found.iter().filter_map(|segment| argument_text(segment, text)));
    }
    let probes: Vec<_> = probes.into_iter().collect();
    println!(
        "{} texts, {} accepted, {} distinct simple commands of literal words",
        texts.len(),
        accepted.len(),
        probes.len()
    );
    let mut differences = Vec::new();
    for batch in probes.chunks(1_000) {
        let sources: Vec<String> = batch.iter().map(|(text, _)| format!("w0 {text}")).collect();
        let seen = bash::run(&sources.iter().map(String::as_str).collect::<Vec<_>>(), Mode::default());
        for ((text, words), seen) in batch.iter().zip(seen) {
            let mut expected = vec!["w0".to_string()];
            expected.extend(words.iter().cloned());
            if let Some(what) = compare(&[expected], seen) {
                differences.push(format!("{text:?}\n  {what}"));
            }
        }
    }
    let sources: Vec<&str> = accepted.iter().map(|(text, _)| text.as_str()).collect();
    for (text, message) in bash::syntax_errors(&sources) {
        differences.push(format!("{text:?}\n  {message}"));
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    assert!(probes.len() >= 30, "too few commands were compared to mean anything");
}
