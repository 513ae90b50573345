//! The admission webhooks. What they decide is in [`review`]; here is what they
//! share with the conversion: bounded bodies, and an answer to whatever comes.

pub mod review;

use std::time::Duration;

use actix_web::http::{StatusCode, header};
use actix_web::web::{self, Data, Payload, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};

use crate::api::webhooks::{MUTATE_PATH, VALIDATE_PATH};
use crate::telemetry::Metrics;
use crate::telemetry::metrics::Webhook;

use self::review::{NotAReview, judge, mutate};
use super::body::Intake;
use super::server::{only_post, rejected};

/// The largest review, in bytes: it carries two objects in an update.
const LARGEST: usize = 8 << 20;
/// What all bodies under way may take, in bytes.
const TOGETHER: usize = 64 << 20;
/// For a body to come in. The API server waits for 10 s in all.
const DEADLINE: Duration = Duration::from_secs(8);

type Decide = fn(&[u8]) -> Result<Vec<u8>, NotAReview>;

/// The admission webhooks. Clones are one: they share the memory for bodies.
#[derive(Clone)]
pub struct Admission {
    intake: Intake,
    webhooks: [(&'static str, Decide, Webhook); 2],
}

/// One of them.
struct One {
    path: &'static str,
    decide: Decide,
    intake: Intake,
    metrics: Webhook,
}

impl Admission {
    /// The webhooks, with their series.
    pub fn new(metrics: &Metrics) -> Self {
        let webhook = |path, decide: Decide| (path, decide, metrics.admission_webhook(path));
        Self {
            intake: Intake::new(LARGEST, TOGETHER, DEADLINE),
            webhooks: [webhook(MUTATE_PATH, mutate), webhook(VALIDATE_PATH, judge)],
        }
    }

    /// Adds them to a server.
    pub fn routes(&self, config: &mut ServiceConfig) {
        for (path, decide, metrics) in &self.webhooks {
            let one = One { path, decide: *decide, intake: self.intake.clone(), metrics: metrics.clone() };
            let resource = web::resource(*path).app_data(Data::new(one));
            config.service(resource.post(answer).default_service(web::to(only_post)));
        }
    }
}

async fn answer(request: HttpRequest, payload: Payload, webhook: Data<One>) -> HttpResponse {
    let call = webhook.metrics.begin();
    let answer = match webhook.intake.json(&request, payload).await {
        Ok(body) => match (webhook.decide)(&body.bytes) {
            Ok(answer) => HttpResponse::Ok().content_type(header::ContentType::json()).body(answer),
            Err(error) => rejected(webhook.path, StatusCode::BAD_REQUEST, &error.to_string()),
        },
        Err(refused) => rejected(webhook.path, refused.status(), &refused.to_string()),
    };
    // actix-web has an older crate of the same types.
    let status = http::StatusCode::from_u16(answer.status().as_u16());
    call.answered(status.unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR));
    answer
}
