//! No text may make the lexer panic, and every tree must fit its source.
// contract: X4
#![no_main]

use cmdgate_lexer::{Grammar, check_invariants, lex};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &str| {
    let large = lex(source, Grammar::Sequence);
    match &large {
        Ok(script) => assert_eq!(check_invariants(script, source), Ok(())),
        Err(error) => assert!(source.get(error.span.range()).is_some(), "{error:?} points outside"),
    }
    match lex(source, Grammar::Pipeline) {
        // What the small grammar accepts, the large one reads in the same way.
        Ok(script) => assert_eq!(Ok(script), large),
        Err(error) => assert!(source.get(error.span.range()).is_some(), "{error:?} points outside"),
    }
});
