//! Encodings: `base64` and its kind, `iconv`, `numfmt`

use crate::condition::Condition;
use crate::spec::{CommandSpec, Operands, Role, Rule, ScriptIssue, Tweak, inert, writes};

pub(super) static BASE64: CommandSpec = CommandSpec {
    names: &["base64", "base32"],
    about: "encodes or decodes a file",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-d", "--decode"]),
        inert(&["-i", "--ignore-garbage"]),
        inert(&["-w", "--wrap"]).takes_number(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
        // macOS.
        inert(&["-D"]).elsewhere(),
        inert(&["-b", "--break"]).takes_number().elsewhere(),
        writes(&["-o", "--output"], "writes the result into the file").takes(Role::WritePath).elsewhere(),
    ],
    operands: Operands::at_most(&[Role::ReadPath], "takes one file").stdin_below(1),
    ..CommandSpec::JUDGED
};

pub(super) static BASENC: CommandSpec = CommandSpec {
    names: &["basenc"],
    about: "encodes or decodes a file",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["--base64"]),
        inert(&["--base64url"]),
        inert(&["--base58"]).elsewhere(),
        inert(&["--base32"]),
        inert(&["--base32hex"]),
        inert(&["--base16"]),
        inert(&["--base2msbf"]),
        inert(&["--base2lsbf"]),
        inert(&["-d", "--decode"]),
        inert(&["-i", "--ignore-garbage"]),
        inert(&["-w", "--wrap"]).takes_number(),
        inert(&["--z85"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::at_most(&[Role::ReadPath], "takes one file").stdin_below(1),
    ..CommandSpec::JUDGED
};

/// A code with a `/` in it may be the path of a charmap file.
pub(super) static ICONV: CommandSpec = CommandSpec {
    names: &["iconv"],
    about: "converts between character encodings",
    checked: "glibc 2.36",
    flags: &[
        inert(&["-f", "--from-code"]).takes(Role::Script(code)),
        inert(&["-t", "--to-code"]).takes(Role::Script(code)),
        inert(&["-l", "--list"]),
        inert(&["-c"]),
        writes(&["-o", "--output"], "writes the result into the file").takes(Role::WritePath),
        inert(&["-s", "--silent"]),
        inert(&["--verbose"]),
        inert(&["-?", "--help"]).ends(),
        inert(&["--usage"]).ends(),
        inert(&["-V", "--version"]).ends(),
    ],
    operands: Operands::FILES,
    rules: &[
        Rule::When(&["-l"], Tweak::NeverStdin),
        // `ASCII//TRANSLIT` is tried as a path in the working directory, too.
        Rule::When(&["-f", "-t"], Tweak::Needs(Condition::ReadsConfined)),
    ],
    ..CommandSpec::JUDGED
};

fn code(text: &str) -> Result<(), ScriptIssue> {
    let name = text.split("//").next().unwrap_or("");
    let modifiers = text.split("//").skip(1);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:+".contains(&byte);
    // `..//TRANSLIT` is a path as well.
    let leads_up = !name.is_empty() && name.bytes().all(|byte| byte == b'.');
    if name.bytes().all(plain)
        && !leads_up
        && modifiers.into_iter().all(|word| matches!(word, "" | "TRANSLIT" | "IGNORE"))
    {
        return Ok(());
    }
    Err(ScriptIssue::new(0, text.len(), "is not a plain name of an encoding, and may be read as a file"))
}

/// Its operands are numbers.
pub(super) static NUMFMT: CommandSpec = CommandSpec {
    names: &["numfmt"],
    about: "converts numbers from and to human forms",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["--debug"]),
        inert(&["-d", "--delimiter"]).takes_text(),
        inert(&["--field"]).takes_text(),
        inert(&["--format"]).takes_text(),
        inert(&["--from"]).takes_text(),
        inert(&["--from-unit"]).takes_text(),
        inert(&["--grouping"]),
        inert(&["--header"]).may_take(Role::Number),
        inert(&["--invalid"]).takes_text(),
        inert(&["--padding"]).takes_number(),
        inert(&["--round"]).takes_text(),
        inert(&["--suffix"]).takes_text(),
        inert(&["--to"]).takes_text(),
        inert(&["--to-unit"]).takes_text(),
        inert(&["--unit-separator"]).takes_text().elsewhere(),
        inert(&["-z", "--zero-terminated"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::TEXTS.stdin_below(1),
    ..CommandSpec::JUDGED
};

#[cfg(test)]
mod tests {
    use super::code;

    #[test]
    fn codes() {
        // contract: S9
        for harmless in
            ["utf8", "UTF-16LE", "ASCII//TRANSLIT", "ISO_8859-1:1987", "latin1//TRANSLIT//IGNORE", ""]
        {
            assert!(code(harmless).is_ok(), "{harmless}");
        }
        for harmful in ["/etc/passwd", "../secret", "a/b", "//../x", "utf8//../x", "~", "..//TRANSLIT"] {
            assert!(code(harmful).is_err(), "{harmful}");
        }
    }
}
