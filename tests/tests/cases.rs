//! The judged case sets: their figures may only improve.

use xtask::audit::cases::{Change, Ratchet, Set, audit};

// contract: S12
#[test]
fn figures_hold_against_the_ratchet() {
    let report = audit(None, &Set::ALL).unwrap();
    let changes = Ratchet::load().unwrap().compare(&report);
    let failing: Vec<_> = changes.iter().filter(|change| Change::fails(change)).collect();
    assert!(failing.is_empty(), "run `cargo xtask audit cases` and look: {failing:#?}");
}
