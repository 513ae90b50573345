//! Whatever comes in as a review is answered or refused, by all three webhooks: no panic, no
//! hang, no stack that runs over, and every answer is JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use task_operator::web::{admission, review};

fuzz_target!(|body: &[u8]| {
    let answers = [
        admission::review::mutate(body).ok(),
        admission::review::judge(body).ok(),
        review::review(body).ok().map(|answer| answer.body),
    ];
    for answer in answers.into_iter().flatten() {
        assert!(serde_json::from_slice::<serde_json::Value>(&answer).is_ok(), "an answer is no JSON");
    }
});
