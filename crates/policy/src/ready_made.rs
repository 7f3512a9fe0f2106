//! Made from `default.toml` and `hardened.toml`; do not edit.
//!
//! `UPDATE=1 cargo test -p cmdgate-policy --lib builtin` writes it anew.

use super::{patterns, texts};
use crate::act::{Act, Defaults, Effect};
use crate::error::Location;
use crate::file::PolicyFile;
use crate::layer::Layer;
use crate::pattern::Pattern;
use crate::program::Program;
use crate::rule::Rule;
use crate::settings::{
    ApprovalPolicy, Environment, Grammar, Limits, Network, ProfileName, SandboxMode, Settings, Trace,
};
use std::num::NonZeroU64;

pub(super) fn default_file() -> PolicyFile {
    PolicyFile::of_parts("default.toml", Layer {
    name: "builtin".to_owned(),
    rules: vec![],
    programs: vec![],
    defaults: Defaults { read: Some(Effect::Allow), write: Some(Effect::Ask), exec: Some(Effect::Ask), net: Some(Effect::Deny) },
    settings: Settings {
        profile: Some(ProfileName::Default), sandbox: Some(SandboxMode::ReadOnly), approval: Some(ApprovalPolicy::OnRequest), grammar: Some(Grammar::Pipeline),
        stop_at_first_failure: Some(false), hints: Some(false),
        read_roots: Some(texts(&[])), write_roots: Some(texts(&[])),
        protected_paths: texts(&[".git", ".hg", ".svn", ".jj", ".env", ".env.*", ".envrc", ".cmdgate", ".cmdgate.toml", ".harness", ".harness.toml", ".claude", ".claude.json", ".codex", ".cursor", ".cursorrules", ".gemini", ".agents", ".amp", ".cline", ".clinerules", ".opencode", ".windsurf", ".aider*", ".mcp.json", ".vscode", ".idea", ".zed", ".devcontainer", ".github/hooks", ".husky", ".githooks", ".gitmodules", ".pre-commit-config.yaml", "lefthook.y{a,}ml"]),
        unprotected_paths: None, secrets: texts(&[]), blocked_paths: texts(&[]),
        network: Network { allow_domains: Some(texts(&[])), deny_domains: texts(&[]) },
        environment: Environment { add: Some(texts(&[])) },
        limits: Limits { timeout_ms: NonZeroU64::new(10000), max_timeout_ms: NonZeroU64::new(60000), exec_timeout_ms: NonZeroU64::new(900000), output_chars: NonZeroU64::new(10240), output_lines: NonZeroU64::new(256), processes: None, open_files: None, file_size_bytes: None, memory_bytes: None, cpu_seconds: None },
        trace: Trace { redact: texts(&[]), keep_days: None, max_bytes: None },
    },
    origin: Some("default.toml".into()),
    tighten_only: false,
    lock: false,
}, vec![Layer {
    name: "builtin-secrets".to_owned(),
    rules: vec![
        Rule { act: Act::Read, effect: Effect::Deny, pattern: Pattern::known_good(".env"), except: patterns(&[]), whole: false, words: false, reason: Some("environment files hold secrets".to_owned()), matches: texts(&[".env", "app/.env", "./.env", "app/../.env", ".ENV"]), not_matches: texts(&[".env.example", ".environment", "x.env.md"]), expires: None, location: Some(Location { span: 1406..1412, line: 79, column: 11 }) },
        Rule { act: Act::Write, effect: Effect::Deny, pattern: Pattern::known_good(".env"), except: patterns(&[]), whole: false, words: false, reason: Some("environment files hold secrets".to_owned()), matches: texts(&[".env", "app/.env"]), not_matches: texts(&[]), expires: None, location: Some(Location { span: 1630..1636, line: 87, column: 11 }) },
        Rule { act: Act::Read, effect: Effect::Deny, pattern: Pattern::known_good(".env.*"), except: patterns(&[".env.example", ".env.sample", ".env.template", ".env.dist", ".env.schema"]), whole: false, words: false, reason: Some("environment files hold secrets; the example beside them does not".to_owned()), matches: texts(&[".env.local", "app/.env.production", ".env.example.local", ".env.example/../.env.local"]), not_matches: texts(&[".env.example", "app/.env.sample", ".environment"]), expires: None, location: Some(Location { span: 1763..1771, line: 94, column: 11 }) },
        Rule { act: Act::Write, effect: Effect::Deny, pattern: Pattern::known_good(".env.*"), except: patterns(&[".env.example", ".env.sample", ".env.template", ".env.dist", ".env.schema"]), whole: false, words: false, reason: Some("environment files hold secrets; the example beside them does not".to_owned()), matches: texts(&[".env.local", "app/.env.production"]), not_matches: texts(&[".env.example", "app/.env.sample"]), expires: None, location: Some(Location { span: 2152..2160, line: 103, column: 11 }) },
        Rule { act: Act::Read, effect: Effect::Deny, pattern: Pattern::known_good("*.pem"), except: patterns(&[]), whole: false, words: false, reason: Some("private keys are kept in PEM files".to_owned()), matches: texts(&["server.pem", "tls/server.PEM"]), not_matches: texts(&["server.pem.md"]), expires: None, location: Some(Location { span: 2472..2479, line: 112, column: 11 }) },
        Rule { act: Act::Write, effect: Effect::Deny, pattern: Pattern::known_good("*.pem"), except: patterns(&[]), whole: false, words: false, reason: Some("private keys are kept in PEM files".to_owned()), matches: texts(&["server.pem", "tls/server.pem"]), not_matches: texts(&[]), expires: None, location: Some(Location { span: 2653..2660, line: 120, column: 11 }) },
        Rule { act: Act::Read, effect: Effect::Deny, pattern: Pattern::known_good("*.key"), except: patterns(&[]), whole: false, words: false, reason: Some("private keys".to_owned()), matches: texts(&["server.key", "tls/server.key"]), not_matches: texts(&["keys.md", "server.keys"]), expires: None, location: Some(Location { span: 2803..2810, line: 127, column: 11 }) },
        Rule { act: Act::Write, effect: Effect::Deny, pattern: Pattern::known_good("*.key"), except: patterns(&[]), whole: false, words: false, reason: Some("private keys".to_owned()), matches: texts(&["server.key", "tls/server.key"]), not_matches: texts(&[]), expires: None, location: Some(Location { span: 2971..2978, line: 135, column: 11 }) },
        Rule { act: Act::Read, effect: Effect::Deny, pattern: Pattern::known_good("id_rsa"), except: patterns(&[]), whole: false, words: false, reason: Some("private keys of SSH".to_owned()), matches: texts(&["id_rsa", "/home/me/.ssh/id_rsa", ".ssh/ID_RSA"]), not_matches: texts(&["id_rsa.pub"]), expires: None, location: Some(Location { span: 3099..3107, line: 142, column: 11 }) },
        Rule { act: Act::Write, effect: Effect::Deny, pattern: Pattern::known_good("id_rsa"), except: patterns(&[]), whole: false, words: false, reason: Some("private keys of SSH".to_owned()), matches: texts(&["id_rsa", "/home/me/.ssh/id_rsa", ".ssh/ID_RSA"]), not_matches: texts(&["id_rsa.pub"]), expires: None, location: Some(Location { span: 3280..3288, line: 150, column: 11 }) },
        Rule { act: Act::Read, effect: Effect::Deny, pattern: Pattern::known_good("id_ed25519"), except: patterns(&[]), whole: false, words: false, reason: Some("private keys of SSH".to_owned()), matches: texts(&["id_ed25519", "keys/id_ed25519"]), not_matches: texts(&["id_ed25519.pub"]), expires: None, location: Some(Location { span: 3460..3472, line: 158, column: 11 }) },
        Rule { act: Act::Write, effect: Effect::Deny, pattern: Pattern::known_good("id_ed25519"), except: patterns(&[]), whole: false, words: false, reason: Some("private keys of SSH".to_owned()), matches: texts(&["id_ed25519", "keys/id_ed25519"]), not_matches: texts(&["id_ed25519.pub"]), expires: None, location: Some(Location { span: 3633..3645, line: 166, column: 11 }) },
        Rule { act: Act::Read, effect: Effect::Deny, pattern: Pattern::known_good("id_{dsa,ecdsa,ecdsa_sk,ed25519_sk}"), except: patterns(&[]), whole: false, words: false, reason: Some("private keys of SSH".to_owned()), matches: texts(&["id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519_sk"]), not_matches: texts(&["id_ecdsa.pub"]), expires: None, location: Some(Location { span: 3805..3841, line: 174, column: 11 }) },
        Rule { act: Act::Write, effect: Effect::Deny, pattern: Pattern::known_good("id_{dsa,ecdsa,ecdsa_sk,ed25519_sk}"), except: patterns(&[]), whole: false, words: false, reason: Some("private keys of SSH".to_owned()), matches: texts(&["id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519_sk"]), not_matches: texts(&["id_ecdsa.pub"]), expires: None, location: Some(Location { span: 4021..4057, line: 182, column: 11 }) },],
    programs: vec![],
    defaults: Defaults { read: None, write: None, exec: None, net: None },
    settings: Settings {
        profile: None, sandbox: None, approval: None, grammar: None,
        stop_at_first_failure: None, hints: None,
        read_roots: None, write_roots: None,
        protected_paths: texts(&[]),
        unprotected_paths: None, secrets: texts(&[]), blocked_paths: texts(&[]),
        network: Network { allow_domains: None, deny_domains: texts(&[]) },
        environment: Environment { add: None },
        limits: Limits { timeout_ms: None, max_timeout_ms: None, exec_timeout_ms: None, output_chars: None, output_lines: None, processes: None, open_files: None, file_size_bytes: None, memory_bytes: None, cpu_seconds: None },
        trace: Trace { redact: texts(&[]), keep_days: None, max_bytes: None },
    },
    origin: Some("default.toml".into()),
    tighten_only: false,
    lock: false,
}])
}

pub(super) fn hardened_file() -> PolicyFile {
    PolicyFile::of_parts("hardened.toml", Layer {
    name: "hardened".to_owned(),
    rules: vec![
        Rule { act: Act::Exec, effect: Effect::Deny, pattern: Pattern::known_good("git * --ou*"), except: patterns(&[]), whole: false, words: false, reason: Some("`--output` writes a file".to_owned()), matches: texts(&["git diff --output=x", "git log -p --output x", "/usr/bin/git show --output=x"]), not_matches: texts(&["git log --oneline"]), expires: None, location: Some(Location { span: 6673..6686, line: 303, column: 11 }) },
        Rule { act: Act::Exec, effect: Effect::Deny, pattern: Pattern::known_good("git * --ext*"), except: patterns(&[]), whole: false, words: false, reason: Some("`--ext-diff` starts the program that the configuration names".to_owned()), matches: texts(&["git diff --ext-diff"]), not_matches: texts(&[]), expires: None, location: Some(Location { span: 6895..6909, line: 311, column: 11 }) },
        Rule { act: Act::Exec, effect: Effect::Deny, pattern: Pattern::known_good("git * --textc*"), except: patterns(&[]), whole: false, words: false, reason: Some("`--textconv` starts the program that the configuration names".to_owned()), matches: texts(&["git show --textconv HEAD:x"]), not_matches: texts(&["git diff --text"]), expires: None, location: Some(Location { span: 7063..7079, line: 318, column: 11 }) },
        Rule { act: Act::Exec, effect: Effect::Deny, pattern: Pattern::known_good("git cat-file * -*"), except: patterns(&[]), whole: false, words: false, reason: Some("`--textconv` and `--filters` start the programs that the configuration names".to_owned()), matches: texts(&["git cat-file -p HEAD:x --filters"]), not_matches: texts(&["git cat-file -p HEAD:x"]), expires: None, location: Some(Location { span: 7272..7291, line: 326, column: 11 }) },
        Rule { act: Act::Exec, effect: Effect::Deny, pattern: Pattern::known_good("git grep {,* }{-O,--op}*"), except: patterns(&[]), whole: false, words: false, reason: Some("`--open-files-in-pager` starts a pager".to_owned()), matches: texts(&["git grep -O x", "git grep -n --open-files-in-pager=less x"]), not_matches: texts(&["git grep --or x"]), expires: None, location: Some(Location { span: 7513..7539, line: 334, column: 11 }) },
        Rule { act: Act::Exec, effect: Effect::Deny, pattern: Pattern::known_good("git config *--{add,unset*,replace-all,rename-section,remove-section,edit}**"), except: patterns(&[]), whole: false, words: false, reason: Some("writes the configuration".to_owned()), matches: texts(&["git config --get x --unset", "git config --get --add x y"]), not_matches: texts(&[]), expires: None, location: Some(Location { span: 7741..7818, line: 342, column: 11 }) },
        Rule { act: Act::Exec, effect: Effect::Deny, pattern: Pattern::known_good("eval **"), except: patterns(&[]), whole: false, words: false, reason: Some("runs its arguments as a command line".to_owned()), matches: texts(&["eval x"]), not_matches: texts(&["evalx"]), expires: None, location: Some(Location { span: 9284..9293, line: 414, column: 11 }) },
        Rule { act: Act::Exec, effect: Effect::Deny, pattern: Pattern::known_good("exec **"), except: patterns(&[]), whole: false, words: false, reason: Some("replaces the shell".to_owned()), matches: texts(&["exec x"]), not_matches: texts(&["execx"]), expires: None, location: Some(Location { span: 9432..9441, line: 422, column: 11 }) },
        Rule { act: Act::Exec, effect: Effect::Deny, pattern: Pattern::known_good("source **"), except: patterns(&[]), whole: false, words: false, reason: Some("runs a file in the shell".to_owned()), matches: texts(&["source x"]), not_matches: texts(&["sourcex"]), expires: None, location: Some(Location { span: 9562..9573, line: 430, column: 11 }) },
        Rule { act: Act::Exec, effect: Effect::Deny, pattern: Pattern::known_good(". **"), except: patterns(&[]), whole: false, words: false, reason: Some("runs a file in the shell".to_owned()), matches: texts(&[". x"]), not_matches: texts(&[".x"]), expires: None, location: Some(Location { span: 9704..9710, line: 438, column: 11 }) },],
    programs: vec![
        Program { name: "ls".to_owned(), purpose: Some("lists folders".to_owned()), only_in_sandbox: false, arguments: None, hint: Some("a tool that lists folders, such as `list_dir` where it is offered, does this without a command".to_owned()), location: Some(Location { span: 1325..1329, line: 38, column: 8 }) },
        Program { name: "find".to_owned(), purpose: Some("finds files; its actions are read by the classifier".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 1480..1486, line: 43, column: 8 }) },
        Program { name: "stat".to_owned(), purpose: Some("shows what the file system knows of a file".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 1571..1577, line: 47, column: 8 }) },
        Program { name: "file".to_owned(), purpose: Some("tells what kind of file it is".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 1653..1659, line: 51, column: 8 }) },
        Program { name: "du".to_owned(), purpose: Some("adds up sizes".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 1722..1726, line: 55, column: 8 }) },
        Program { name: "wc".to_owned(), purpose: Some("counts lines, words and bytes".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 1773..1777, line: 59, column: 8 }) },
        Program { name: "head".to_owned(), purpose: Some("shows the beginning of a file".to_owned()), only_in_sandbox: false, arguments: None, hint: Some("a tool that reads files, such as `read_file` where it is offered, reads any part of one".to_owned()), location: Some(Location { span: 1840..1846, line: 63, column: 8 }) },
        Program { name: "tail".to_owned(), purpose: Some("shows the end of a file".to_owned()), only_in_sandbox: false, arguments: None, hint: Some("a tool that reads files, such as `read_file` where it is offered, reads any part of one".to_owned()), location: Some(Location { span: 2006..2012, line: 68, column: 8 }) },
        Program { name: "cat".to_owned(), purpose: Some("shows files".to_owned()), only_in_sandbox: false, arguments: None, hint: Some("a tool that reads files, such as `read_file` where it is offered, keeps to bounds".to_owned()), location: Some(Location { span: 2166..2171, line: 73, column: 8 }) },
        Program { name: "nl".to_owned(), purpose: Some("shows a file with line numbers".to_owned()), only_in_sandbox: false, arguments: None, hint: Some("a tool that reads files, such as `read_file` where it is offered, keeps to bounds".to_owned()), location: Some(Location { span: 2307..2311, line: 78, column: 8 }) },
        Program { name: "grep".to_owned(), purpose: Some("searches text".to_owned()), only_in_sandbox: false, arguments: None, hint: Some("a search tool, where there is one, gives bounded results".to_owned()), location: Some(Location { span: 2466..2472, line: 83, column: 8 }) },
        Program { name: "rg".to_owned(), purpose: Some("searches text".to_owned()), only_in_sandbox: false, arguments: None, hint: Some("a search tool, where there is one, gives bounded results".to_owned()), location: Some(Location { span: 2585..2589, line: 88, column: 8 }) },
        Program { name: "ag".to_owned(), purpose: Some("searches text; can start a pager".to_owned()), only_in_sandbox: true, arguments: None, hint: Some("a search tool, where there is one, gives bounded results".to_owned()), location: Some(Location { span: 2702..2706, line: 93, column: 8 }) },
        Program { name: "tree".to_owned(), purpose: Some("shows folders as a tree".to_owned()), only_in_sandbox: false, arguments: None, hint: Some("a tool that lists folders, such as `list_dir` where it is offered, does this without a command".to_owned()), location: Some(Location { span: 2861..2867, line: 99, column: 8 }) },
        Program { name: "sort".to_owned(), purpose: Some("sorts lines".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 3028..3034, line: 104, column: 8 }) },
        Program { name: "uniq".to_owned(), purpose: Some("joins equal lines".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 3079..3085, line: 108, column: 8 }) },
        Program { name: "cut".to_owned(), purpose: Some("takes columns".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 3136..3141, line: 112, column: 8 }) },
        Program { name: "tr".to_owned(), purpose: Some("changes characters".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 3188..3192, line: 116, column: 8 }) },
        Program { name: "diff".to_owned(), purpose: Some("compares files".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 3244..3250, line: 120, column: 8 }) },
        Program { name: "cmp".to_owned(), purpose: Some("compares files byte by byte".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 3298..3303, line: 124, column: 8 }) },
        Program { name: "comm".to_owned(), purpose: Some("compares sorted files".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 3364..3370, line: 128, column: 8 }) },
        Program { name: "od".to_owned(), purpose: Some("shows bytes".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 3425..3429, line: 132, column: 8 }) },
        Program { name: "strings".to_owned(), purpose: Some("shows the text in a binary file".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 3474..3483, line: 136, column: 8 }) },
        Program { name: "sha256sum".to_owned(), purpose: Some("computes a checksum".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 3548..3559, line: 140, column: 8 }) },
        Program { name: "basename".to_owned(), purpose: Some("takes a path apart".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 3612..3622, line: 144, column: 8 }) },
        Program { name: "dirname".to_owned(), purpose: Some("takes a path apart".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 3674..3683, line: 148, column: 8 }) },
        Program { name: "realpath".to_owned(), purpose: Some("resolves a path".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 3735..3745, line: 152, column: 8 }) },
        Program { name: "readlink".to_owned(), purpose: Some("resolves a link".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 3794..3804, line: 156, column: 8 }) },
        Program { name: "pwd".to_owned(), purpose: Some("names the working directory".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 3853..3858, line: 160, column: 8 }) },
        Program { name: "which".to_owned(), purpose: Some("finds a program".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 3919..3926, line: 164, column: 8 }) },
        Program { name: "echo".to_owned(), purpose: Some("prints its arguments".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 3975..3981, line: 168, column: 8 }) },
        Program { name: "printf".to_owned(), purpose: Some("prints its arguments".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 4035..4043, line: 172, column: 8 }) },
        Program { name: "test".to_owned(), purpose: Some("compares and looks at files".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 4097..4103, line: 176, column: 8 }) },
        Program { name: "true".to_owned(), purpose: Some("succeeds".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 4164..4170, line: 180, column: 8 }) },
        Program { name: "false".to_owned(), purpose: Some("fails".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 4212..4219, line: 184, column: 8 }) },
        Program { name: "jq".to_owned(), purpose: Some("reads JSON".to_owned()), only_in_sandbox: false, arguments: None, hint: None, location: Some(Location { span: 4258..4262, line: 188, column: 8 }) },
        Program { name: "yq".to_owned(), purpose: Some("reads YAML; can write in place".to_owned()), only_in_sandbox: true, arguments: None, hint: None, location: Some(Location { span: 4306..4310, line: 192, column: 8 }) },
        Program { name: "tokei".to_owned(), purpose: Some("counts lines of code".to_owned()), only_in_sandbox: true, arguments: None, hint: None, location: Some(Location { span: 4397..4404, line: 197, column: 8 }) },
        Program { name: "cloc".to_owned(), purpose: Some("counts lines of code; unpacks archives with other programs".to_owned()), only_in_sandbox: true, arguments: None, hint: None, location: Some(Location { span: 4481..4487, line: 202, column: 8 }) },
        Program { name: "scc".to_owned(), purpose: Some("counts lines of code; can write a report".to_owned()), only_in_sandbox: true, arguments: None, hint: None, location: Some(Location { span: 4602..4607, line: 207, column: 8 }) },
        Program { name: "ast-grep".to_owned(), purpose: Some("searches syntax trees; can rewrite files".to_owned()), only_in_sandbox: true, arguments: None, hint: None, location: Some(Location { span: 4704..4714, line: 212, column: 8 }) },
        Program { name: "repomix".to_owned(), purpose: Some("packs a repository into one file".to_owned()), only_in_sandbox: true, arguments: None, hint: None, location: Some(Location { span: 4811..4820, line: 217, column: 8 }) },
        Program { name: "git".to_owned(), purpose: Some("reads the history".to_owned()), only_in_sandbox: false, arguments: Some(texts(&["--version", "log **", "diff **", "show **", "blame **", "status **", "shortlog **", "rev-parse **", "rev-list **", "ls-files **", "ls-tree **", "describe **", "name-rev **", "merge-base **", "for-each-ref **", "show-ref **", "grep **", "count-objects **", "diff-tree **", "diff-index **", "diff-files **", "cherry **", "range-diff **", "check-ignore **", "check-attr **", "cat-file -t *", "cat-file -s *", "cat-file -p *", "cat-file -e *", "branch", "branch -a", "branch --all", "branch -r", "branch --remotes", "branch -v", "branch -vv", "branch -av", "branch -avv", "branch --show-current", "branch --list **", "branch --contains **", "branch --no-contains **", "branch --merged **", "branch --no-merged **", "branch --points-at **", "tag", "tag -l **", "tag --list **", "tag -n **", "tag --contains **", "tag --no-contains **", "tag --merged **", "tag --no-merged **", "tag --points-at **", "remote", "remote -v", "remote --verbose", "remote get-url **", "stash list **", "stash show **", "worktree list **", "reflog", "reflog show **", "config -l", "config --list", "config --get *", "config --get-all *", "config --get-regexp *", "config get *", "config list"])), hint: None, location: Some(Location { span: 5125..5130, line: 225, column: 8 }) },
        Program { name: "awk".to_owned(), purpose: Some("can start any program, and write".to_owned()), only_in_sandbox: true, arguments: None, hint: None, location: Some(Location { span: 8106..8111, line: 350, column: 8 }) },
        Program { name: "sed".to_owned(), purpose: Some("can start any program, and write".to_owned()), only_in_sandbox: true, arguments: None, hint: None, location: Some(Location { span: 8200..8205, line: 355, column: 8 }) },
        Program { name: "xargs".to_owned(), purpose: Some("starts any program".to_owned()), only_in_sandbox: true, arguments: None, hint: None, location: Some(Location { span: 8294..8301, line: 360, column: 8 }) },
        Program { name: "env".to_owned(), purpose: Some("starts any program".to_owned()), only_in_sandbox: true, arguments: None, hint: None, location: Some(Location { span: 8376..8381, line: 365, column: 8 }) },
        Program { name: "make".to_owned(), purpose: Some("starts whatever the project says".to_owned()), only_in_sandbox: true, arguments: None, hint: None, location: Some(Location { span: 8456..8462, line: 370, column: 8 }) },
        Program { name: "python".to_owned(), purpose: Some("runs anything".to_owned()), only_in_sandbox: true, arguments: None, hint: None, location: Some(Location { span: 8551..8559, line: 375, column: 8 }) },
        Program { name: "python3".to_owned(), purpose: Some("runs anything".to_owned()), only_in_sandbox: true, arguments: None, hint: None, location: Some(Location { span: 8629..8638, line: 380, column: 8 }) },
        Program { name: "node".to_owned(), purpose: Some("runs anything".to_owned()), only_in_sandbox: true, arguments: None, hint: None, location: Some(Location { span: 8708..8714, line: 385, column: 8 }) },
        Program { name: "npx".to_owned(), purpose: Some("fetches and runs anything".to_owned()), only_in_sandbox: true, arguments: None, hint: None, location: Some(Location { span: 8784..8789, line: 390, column: 8 }) },
        Program { name: "uv".to_owned(), purpose: Some("fetches and runs anything".to_owned()), only_in_sandbox: true, arguments: None, hint: None, location: Some(Location { span: 8871..8875, line: 395, column: 8 }) },
        Program { name: "cargo".to_owned(), purpose: Some("compiles and runs what the project says".to_owned()), only_in_sandbox: true, arguments: None, hint: None, location: Some(Location { span: 8957..8964, line: 400, column: 8 }) },
        Program { name: "go".to_owned(), purpose: Some("compiles and runs what the project says".to_owned()), only_in_sandbox: true, arguments: None, hint: None, location: Some(Location { span: 9060..9064, line: 405, column: 8 }) },],
    defaults: Defaults { read: Some(Effect::Allow), write: Some(Effect::Deny), exec: Some(Effect::Deny), net: Some(Effect::Deny) },
    settings: Settings {
        profile: Some(ProfileName::Hardened), sandbox: Some(SandboxMode::ReadOnly), approval: Some(ApprovalPolicy::Never), grammar: Some(Grammar::Single),
        stop_at_first_failure: Some(true), hints: Some(true),
        read_roots: None, write_roots: None,
        protected_paths: texts(&[]),
        unprotected_paths: None, secrets: texts(&[]), blocked_paths: texts(&["/etc", "/root", "/boot", "/usr/sbin", "/proc", "/sys", "/private/etc"]),
        network: Network { allow_domains: None, deny_domains: texts(&[]) },
        environment: Environment { add: None },
        limits: Limits { timeout_ms: NonZeroU64::new(900000), max_timeout_ms: NonZeroU64::new(900000), exec_timeout_ms: NonZeroU64::new(900000), output_chars: NonZeroU64::new(100000), output_lines: NonZeroU64::new(100000), processes: None, open_files: None, file_size_bytes: None, memory_bytes: None, cpu_seconds: None },
        trace: Trace { redact: texts(&[]), keep_days: None, max_bytes: None },
    },
    origin: Some("hardened.toml".into()),
    tighten_only: false,
    lock: true,
}, vec![])
}
