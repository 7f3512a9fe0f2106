//! How long one check takes among 10,000 rules, and how long compiling them takes.
//!
//! `cargo bench -p cmdgate-policy`; a check must stay under 10 µs.

use cmdgate_policy::{Act, Policy};
use divan::{Bencher, black_box};
use std::fmt::Write;

const RULES: usize = 10_000;

fn main() {
    divan::main();
}

/// A third each of word prefixes, globs with a star inside and plain commands; denies, asks and allows.
fn mixed() -> Policy {
    let mut policy = Policy::default().layer("bench");
    for number in 0..RULES {
        policy = match number % 6 {
            0 => policy.allow_exec(&format!("tool{number} run **")),
            1 => policy.deny_exec(&format!("git push * branch-{number}")),
            2 => policy.ask_exec(&format!("npm run script-{number}")),
            3 => policy.deny_read(&format!("src/module{number}/*.secret")),
            4 => policy.allow_write(&format!("out/{number}/**/*.txt")),
            _ => policy.allow_exec(&format!("*/bin/program{number}*")),
        };
    }
    policy.compile();
    policy
}

/// Every rule shares its beginning with the target.
fn shared_prefix() -> Policy {
    let mut policy = Policy::default().layer("bench");
    for number in 0..RULES {
        policy = policy.deny_exec(&format!("cargo test --package * case_{number}"));
    }
    policy.compile();
    policy
}

/// Rules that have nothing in common but a long path, as remembered approvals do.
fn deep_paths() -> Policy {
    let mut policy = Policy::default().layer("bench");
    for number in 0..RULES {
        policy = policy.allow_write(&format!("/home/person/project/packages/web/src/components/{number}/*"));
    }
    policy.compile();
    policy
}

#[divan::bench]
fn exec_hit(bencher: Bencher<'_, '_>) {
    let policy = mixed();
    bencher.bench_local(|| policy.check_exec(black_box(&["tool6000", "run", "--fast", "src/main.rs"])));
}

#[divan::bench]
fn exec_miss(bencher: Bencher<'_, '_>) {
    let policy = mixed();
    bencher.bench_local(|| {
        policy.check_exec(black_box(&["/usr/bin/python3", "-m", "pytest", "tests/test_all.py", "-q"]))
    });
}

#[divan::bench]
fn exec_deny_in_shared_prefix(bencher: Bencher<'_, '_>) {
    let policy = shared_prefix();
    bencher
        .bench_local(|| policy.check_exec(black_box(&["cargo", "test", "--package", "core", "case_9999"])));
}

#[divan::bench]
fn read_path(bencher: Bencher<'_, '_>) {
    let policy = mixed();
    bencher.bench_local(|| policy.check(Act::Read, black_box("src/module6003/inner/token.secret")));
}

#[divan::bench]
fn write_deep_path(bencher: Bencher<'_, '_>) {
    let policy = deep_paths();
    let target = "/home/person/project/packages/web/src/components/9999/Button.tsx";
    bencher.bench_local(|| policy.check(Act::Write, black_box(target)));
}

#[divan::bench]
fn built_in_policy(bencher: Bencher<'_, '_>) {
    let policy = Policy::default();
    policy.compile();
    bencher.bench_local(|| policy.check(Act::Read, black_box("src/main.rs")));
}

#[divan::bench(sample_count = 10)]
fn compile(bencher: Bencher<'_, '_>) {
    let layers = mixed().layers().to_vec();
    bencher
        .with_inputs(|| layers.iter().cloned().fold(Policy::permissive(), Policy::with_layer))
        .bench_local_values(|policy| {
            policy.compile();
            policy
        });
}

/// What a process pays for a policy file of 25 rules with examples before its first check.
#[divan::bench]
fn read_built_in_and_check_once() -> cmdgate_policy::Ruling {
    let text = include_str!("../src/default.toml");
    Policy::from_toml("default.toml", black_box(text)).map_or_else(
        |_| Policy::permissive().check(Act::Exec, "never"),
        |policy| policy.check_exec(black_box(&["ls", "-l"])),
    )
}

#[divan::bench(sample_count = 10)]
fn parse_toml(bencher: Bencher<'_, '_>) {
    let mut text = String::new();
    for number in 0..RULES {
        let _ = write!(
            text,
            "[[rule]]\nact = \"exec\"\neffect = \"allow\"\npattern = \"tool{number} run **\"\n\n"
        );
    }
    bencher.bench_local(|| Policy::from_toml("bench.toml", black_box(&text)));
}
