//! Every reason code has an example, and the example gets that code.

use cmdgate_classifier::{Code, Context, Grammar, classify};

#[test]
fn every_example_gets_its_code() {
    // contract: S4
    let mut wrong = Vec::new();
    for code in Code::ALL {
        let gets = |grammar| {
            let context = Context::new(grammar).with_root("/home/user/project");
            classify(code.example(), &context).findings.iter().any(|finding| finding.code == *code)
        };
        if !gets(Grammar::Sequence) && !gets(Grammar::Pipeline) {
            wrong.push((code.as_str(), code.example()));
        }
    }
    assert_eq!(wrong, []);
}

#[test]
fn spellings_are_unique_and_meanings_are_sentences() {
    let mut spellings: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    spellings.sort_unstable();
    spellings.dedup();
    assert_eq!(spellings.len(), Code::ALL.len());
    for code in Code::ALL {
        assert!(code.meaning().trim().ends_with('.'), "{}", code.meaning());
    }
}
