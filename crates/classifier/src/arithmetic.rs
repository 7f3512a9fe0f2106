//! Arithmetic expansions, as far as it matters whether they fail.

/// Whether the shell evaluates this expression for certain: plain decimal numbers joined by operators that are always
/// defined. Bash prints an error for any other and goes on with the next line, leaving out the rest of this one.
pub(crate) fn succeeds(expression: &str) -> bool {
    let mut reader = Reader { rest: expression };
    reader.expression(0) && reader.rest.is_empty()
}

/// How deep parentheses and signs may nest.
const MOST_DEPTH: u8 = 16;

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn skip(&mut self, text: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(text) else {
            return false;
        };
        self.rest = rest.trim_start_matches([' ', '\t']);
        true
    }

    fn expression(&mut self, depth: u8) -> bool {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        if !self.term(depth) {
            return false;
        }
        loop {
            if self.skip("/") || self.skip("%") {
                if self.number().is_none_or(|number| number == 0) {
                    return false;
                }
                continue;
            }
            // `**` fails for negative powers, and is none of these twice.
            let operators = ["&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*"];
            if self.rest.starts_with("**") || !operators.iter().any(|operator| self.skip(operator)) {
                return true;
            }
            if !self.term(depth) {
                return false;
            }
        }
    }

    fn term(&mut self, depth: u8) -> bool {
        if depth > MOST_DEPTH {
            return false;
        }
        if self.skip("(") {
            return self.expression(depth + 1) && self.skip(")");
        }
        self.number().is_some()
    }

    /// A decimal number without a zero in front, which would make it octal.
    fn number(&mut self) -> Option<u64> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at_checked(end)?;
        if digits.len() > 18 || digits.len() > 1 && digits.starts_with('0') {
            return None;
        }
        let number = digits.parse().ok()?;
        self.rest = rest.trim_start_matches([' ', '\t']);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::succeeds;

    #[test]
    fn what_cannot_fail() {
        // contract: S12
        for certain in ["1", " 1 + 2 ", "2*(3+4)", "10/3%2", "(1 < 2) && 3 >= 0", "0", "7 - 7"] {
            assert!(succeeds(certain), "{certain}");
        }
        for uncertain in [
            "",
            "1/0",
            "1 % 0",
            "1/(2-2)",
            "08",
            "1+",
            "(1",
            "1)",
            "2**-1",
            "2**3",
            "1 2",
            "x",
            "1++2",
            "-1",
            "1,2",
            "9999999999999999999",
            "1?2:3",
            "1/2/0",
        ] {
            assert!(!succeeds(uncertain), "{uncertain}");
        }
    }
}
