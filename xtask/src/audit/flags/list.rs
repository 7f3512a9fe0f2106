//! Reads option lists: the layouts in which `--help` texts and manual pages name flags.

use std::collections::BTreeMap;

/// Whether a flag takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arity {
    None,
    Required,
    Optional,
}

impl Arity {
    pub(super) const fn mark(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Required => "=",
            Self::Optional => "[=]",
        }
    }

    pub(super) const fn phrase(self) -> &'static str {
        match self {
            Self::None => "it takes no value",
            Self::Required => "it needs a value",
            Self::Optional => "its value is optional",
        }
    }
}

/// The flags that a text names at the beginning of its lines.
pub(super) fn parse(text: &str) -> BTreeMap<String, Option<Arity>> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let line = plain(line);
        let trimmed = line.trim_start();
        if trimmed.starts_with('-') {
            entry(trimmed, &mut found);
        }
    }
    found
}

/// Without the overstrikes of a formatted manual page, and with one kind of space and dash.
fn plain(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '\u{8}' => {
                text.pop();
            }
            '\u{2010}' | '\u{2212}' => text.push('-'),
            '\t' => text.push_str("  "),
            c => text.push(c),
        }
    }
    text
}

/// One line: names and placeholders, then two spaces and the description.
fn entry(line: &str, found: &mut BTreeMap<String, Option<Arity>>) {
    let mut names: Vec<String> = Vec::new();
    let mut arity = Arity::None;
    let mut spaces = 0;
    let words: Vec<&str> = line.split(' ').collect();
    for (at, word) in words.iter().copied().enumerate() {
        if word.is_empty() {
            spaces += 1;
            continue;
        }
        let is_filler = word.chars().all(|c| c == '.');
        if is_filler {
            spaces = 0;
            continue;
        }
        let begins = word.trim_start_matches(['[', '|']).starts_with('-') && word.len() > 1;
        if spaces > 0 && !begins && !names.is_empty() {
            break;
        }
        spaces = 0;
        if begins {
            for piece in word.trim_start_matches('[').trim_end_matches(',').split(['|', ',']) {
                if piece.starts_with('-') {
                    let (more, own) = name_and_arity(piece);
                    names.extend(more);
                    arity = worse(arity, own);
                }
            }
        } else {
            // A single word between a flag and the gap before the description stands for a value (`-c cols  …`).
            let lone = word.ends_with(',') || words.get(at + 1).is_none_or(|next| next.is_empty());
            match placeholder(word) {
                Some(own) => arity = worse(arity, own),
                None if lone && spaces == 0 => arity = worse(arity, Arity::Required),
                None => break,
            }
        }
    }
    for name in names {
        let slot = found.entry(name).or_insert(Some(arity));
        if *slot != Some(arity) {
            // Named twice and differently: nothing is known.
            *slot = None;
        }
    }
}

/// A name asks for a value when any of its spellings does.
fn worse(a: Arity, b: Arity) -> Arity {
    match (a, b) {
        (Arity::None, other) | (other, Arity::None) => other,
        (Arity::Optional, _) | (_, Arity::Optional) => Arity::Optional,
        (Arity::Required, Arity::Required) => Arity::Required,
    }
}

/// `NUM`, `<pattern>`, `[when]`, `name`: what stands for a value. A lower-case word is text of the description unless it
/// is bracketed.
fn placeholder(word: &str) -> Option<Arity> {
    let word = word.trim_end_matches(',');
    if word.starts_with('[') {
        Some(Arity::Optional)
    } else if word.starts_with(['<', '{', '\''])
        || word.chars().all(|c| c.is_ascii_uppercase() || "_-:.,#0123456789".contains(c))
    {
        Some(Arity::Required)
    } else {
        None
    }
}

/// The names that `--colo[u]r=WHEN` stands for, and the arity that it shows.
fn name_and_arity(piece: &str) -> (Vec<String>, Arity) {
    let end = piece
        .char_indices()
        .find(|(at, c)| match c {
            '=' | '<' | '{' | '(' => *at > 1,
            // Part of the name when a letter or dash follows the bracket, else the beginning of a value.
            '[' => !is_optional_part(piece.get(*at..).unwrap_or("")),
            _ => false,
        })
        .map_or(piece.len(), |(at, _)| at);
    let name = piece.get(..end).unwrap_or(piece);
    let rest = piece.get(end..).unwrap_or("");
    let arity = match rest.chars().next() {
        None => Arity::None,
        Some('[') => Arity::Optional,
        Some('=') if rest.starts_with("=[") => Arity::Optional,
        Some(_) => Arity::Required,
    };
    let mut names = vec![String::new()];
    let mut chars = name.trim_end_matches([']', ')', ':', ';', '.']).chars();
    while let Some(c) = chars.next() {
        if c == '[' {
            let part: String = chars.by_ref().take_while(|c| *c != ']').collect();
            let with: Vec<String> = names.iter().map(|name| format!("{name}{part}")).collect();
            names.extend(with);
        } else {
            for name in &mut names {
                name.push(c);
            }
        }
    }
    names.retain(|name| name.len() > 1 && name.bytes().any(|byte| byte != b'-'));
    (names, arity)
}

/// `[no-]color`, `[u]r`: a bracket inside a name.
fn is_optional_part(text: &str) -> bool {
    let Some((inner, after)) = text.trim_start_matches('[').split_once(']') else {
        return false;
    };
    let is_name = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    is_name(inner) && after.chars().next().is_some_and(|c| c.is_ascii_lowercase() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arity(text: &str, name: &str) -> Option<Arity> {
        parse(text).get(name).copied().flatten()
    }

    #[test]
    fn layouts_of_help_texts() {
        for (text, name, want) in [
            ("  -a, --all                  do not ignore", "-a", Arity::None),
            ("  -a, --all                  do not ignore", "--all", Arity::None),
            ("      --block-size=SIZE      with -l", "--block-size", Arity::Required),
            ("  -w, --width=COLS           set", "-w", Arity::Required),
            ("      --color[=WHEN]         colour", "--color", Arity::Optional),
            (" -E, --dedup <column> de-duplicate", "-E", Arity::Required),
            (" -T, --tree[=<column>] use tree", "-T", Arity::Optional),
            ("    -e, --regexp <PATTERN>...          ", "--regexp", Arity::Required),
            ("   -h --help           print this", "--help", Arity::None),
            ("  -b [N]  ....  --buffers=[N]", "--buffers", Arity::Optional),
            ("    -n, --max-count <n>   limit", "-n", Arity::Required),
            ("    --[no-]show-raw-insn        Display", "--no-show-raw-insn", Arity::None),
            ("    --[no-]show-raw-insn        Display", "--show-raw-insn", Arity::None),
            ("  --colo[u]r=WHEN    when", "--colour", Arity::Required),
            ("  -I, --use-compress-program=PROG", "-I", Arity::Required),
            ("  -n|--lines NUM   x", "--lines", Arity::Required),
            ("\t-e\treport all errors", "-e", Arity::None),
            ("  -c cols     format <cols> octets", "-c", Arity::Required),
            ("  -f script-file, --file=script-file", "-f", Arity::Required),
            ("   -s --small          use less memory", "-s", Arity::None),
        ] {
            assert_eq!(arity(text, name), Some(want), "{text}");
        }
    }

    #[test]
    fn text_is_no_flag() {
        assert!(parse("use -a to see all\n  --\n  -").is_empty());
        assert_eq!(arity("  -x  see -y FILE", "-y"), None);
    }
}
