//! Regular expressions, as far as it matters whether they match an empty text.

/// Whether every match of the expression in this JSON string, quotes included, is at least one character long, as far as
/// a short look tells: no for what is not understood.
pub(crate) fn always_consumes(string: &str) -> bool {
    let Some(text) = string.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return false;
    };
    // `\\` in the string is one backslash. Other escapes of JSON stand for one character, as they do to the expression.
    let text = text.replace("\\\\", "\\");
    let mut rest = text.as_str();
    let consumes = alternatives(&mut rest, 0);
    consumes && rest.is_empty()
}

/// How deep groups may nest.
const MOST_DEPTH: u8 = 16;

/// Alternatives up to a `)` or the end: every one of them must consume.
fn alternatives(rest: &mut &str, depth: u8) -> bool {
    let mut all = true;
    let mut one = false;
    while let Some(c) = rest.chars().next() {
        if c == ')' {
            break;
        }
        if c == '|' {
            *rest = rest.get(1..).unwrap_or("");
            all &= one;
            one = false;
            continue;
        }
        let atom = atom(rest, depth);
        one |= atom && !optional(rest);
    }
    all && one
}

/// One atom; whether it consumes.
fn atom(rest: &mut &str, depth: u8) -> bool {
    let mut chars = rest.chars();
    let first = chars.next();
    let mut consumes = true;
    match first {
        Some('^' | '$') => consumes = false,
        Some('\\') => {
            consumes = !matches!(
                chars.next(),
                None | Some('b' | 'B' | 'A' | 'Z' | 'z' | 'G' | 'K' | 'k' | 'g' | 'Q' | 'E' | '0'..='9')
            );
        }
        Some('[') => {
            // The first character may be the closing bracket itself; nested ones are not followed.
            let mut inside = chars.as_str();
            inside = inside.strip_prefix('^').unwrap_or(inside);
            inside = inside.strip_prefix(']').unwrap_or(inside);
            loop {
                let mut characters = inside.chars();
                let next = characters.next();
                inside = characters.as_str();
                match next {
                    Some(']') => break,
                    Some('\\') => {
                        characters.next();
                        inside = characters.as_str();
                    }
                    None => {
                        *rest = "";
                        return false;
                    }
                    Some(_) => {}
                }
            }
            *rest = inside;
            return true;
        }
        Some('(') => {
            let mut inside = chars.as_str();
            let mut known = depth < MOST_DEPTH;
            if let Some(special) = inside.strip_prefix('?') {
                let name = special.strip_prefix('<').and_then(|named| {
                    let (name, after) = named.split_once('>')?;
                    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then_some(after)
                });
                match special.strip_prefix(':').or(name) {
                    Some(after) => inside = after,
                    None => known = false,
                }
            }
            if !known {
                *rest = "";
                return false;
            }
            let consumes = alternatives(&mut inside, depth + 1);
            *rest = inside.strip_prefix(')').unwrap_or("");
            return consumes;
        }
        Some(_) | None => {}
    }
    *rest = chars.as_str();
    consumes
}

/// Steps over what repeats an atom; whether it may be repeated not at all.
fn optional(rest: &mut &str) -> bool {
    let mut optional = false;
    loop {
        let mut chars = rest.chars();
        match chars.next() {
            Some('*' | '?') => optional = true,
            Some('+') => {}
            Some('{') => {
                optional |= !chars.as_str().starts_with(|c: char| c.is_ascii_digit() && c != '0');
                let Some((_, after)) = rest.split_once('}') else {
                    return optional;
                };
                *rest = after;
                continue;
            }
            Some(_) | None => return optional,
        }
        *rest = chars.as_str();
    }
}

#[cfg(test)]
mod tests {
    use super::always_consumes;
    use proptest::prelude::*;

    #[test]
    fn what_matches_nothing() {
        // contract: S12
        for consumes in [
            r#""x""#,
            r#""\\s+""#,
            r#""^\\s+|\\s+$""#,
            r#""[^a-z]+""#,
            r#""(a|b)c*""#,
            r#""a{2,}""#,
            r#""\\.md$""#,
            r#""(?<x>[0-9]+)""#,
            r#""\n""#,
            r#""[]a]""#,
            r#""a+?b""#,
            r#""(?:x)""#,
        ] {
            assert!(always_consumes(consumes), "{consumes}");
        }
        for empty in [
            r#""""#,
            r#""^""#,
            r#""$""#,
            r#""x*""#,
            r#""x?""#,
            r#""a|""#,
            r#""|a""#,
            r#""(a|b*)""#,
            r#""(?=x)""#,
            r#""\\b""#,
            r#""a{0,2}""#,
            r#""(a*)""#,
            r#""(a)*""#,
            r#""\\s*""#,
            r#""[a""#,
            r#""(?i)""#,
            r#""a+?*""#,
            r#""\\Q\\E""#,
            "x",
            r#""^\\s*|x""#,
        ] {
            assert!(!always_consumes(empty), "{empty}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "[\\\\a|()\\[\\]{}*+?^$0-9:<>\u{e9}]{0,24}") {
            let _ = always_consumes(&alloc::format!("\"{text}\""));
        }
    }
}
