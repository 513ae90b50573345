//! `/convert`: the API server asks for objects of one version as another.
//!
//! What is no review gets a 4xx and a line in the log; every review gets an
//! answer. A review holds whole lists, so bodies may be larger than elsewhere;
//! what all of them together take is bounded.

use std::time::Duration;

use actix_web::http::{StatusCode, header};
use actix_web::web::{self, Data, Payload, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};

use crate::api::crd::CONVERT_PATH;
use crate::telemetry::Metrics;
use crate::telemetry::metrics::Webhook;

use super::body::{Body, Intake};
use super::review::{Answer, review};
use super::server::{only_post, plain, rejected};

/// The largest body, in bytes. A list that needs more is refused, and read in
/// pages (`limit`), as kubectl does by itself.
const LARGEST: usize = 64 << 20;
/// What all bodies under way may take, in bytes. Answers take about as much.
const TOGETHER: usize = 128 << 20;
/// For a body to come in. The API server waits for 30 s in all.
const DEADLINE: Duration = Duration::from_secs(10);
/// A body of more bytes is converted on another thread, so that others need not wait for it.
const LONG: usize = 256 << 10;

/// The conversion webhook. Clones are one: they share the memory for bodies.
#[derive(Clone)]
pub struct Conversion {
    intake: Intake,
    metrics: Webhook,
}

impl Conversion {
    /// The webhook, with its series.
    pub fn new(metrics: &Metrics) -> Self {
        Self {
            intake: Intake::new(LARGEST, TOGETHER, DEADLINE),
            metrics: metrics.conversion_webhook(CONVERT_PATH),
        }
    }

    /// Adds `/convert` to a server.
    pub fn routes(&self, config: &mut ServiceConfig) {
        let resource = web::resource(CONVERT_PATH)
            .app_data(Data::new(self.clone()))
            .post(convert)
            .default_service(web::to(only_post));
        config.service(resource);
    }
}

async fn convert(request: HttpRequest, payload: Payload, conversion: Data<Conversion>) -> HttpResponse {
    let call = conversion.metrics.begin();
    let answer = match conversion.intake.json(&request, payload).await {
        Ok(body) => answer(body).await,
        Err(refused) => rejected(CONVERT_PATH, refused.status(), &refused.to_string()),
    };
    // actix-web has an older crate of the same types.
    let status = http::StatusCode::from_u16(answer.status().as_u16());
    call.answered(status.unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR));
    answer
}

async fn answer(body: Body) -> HttpResponse {
    let reviewed = if body.bytes.len() > LONG {
        // The body lives until its answer is there, and its share of the memory with it.
        match web::block(move || review(&body.bytes)).await {
            Ok(reviewed) => reviewed,
            Err(error) => {
                tracing::error!(%error, "a conversion was given up");
                return plain(HttpResponse::InternalServerError().body("500 internal server error\n"));
            }
        }
    } else {
        review(&body.bytes)
    };
    match reviewed {
        Ok(Answer { body, failure }) => {
            if let Some(reason) = failure {
                tracing::warn!(reason, "an object cannot be converted");
            }
            HttpResponse::Ok().content_type(header::ContentType::json()).body(body)
        }
        Err(error) => rejected(CONVERT_PATH, StatusCode::BAD_REQUEST, &error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::Method;
    use actix_web::{App, test};
    use serde_json::{Value, json};

    use super::*;

    async fn asked(request: test::TestRequest) -> (u16, String) {
        let metrics = Metrics::new(false);
        let conversion = Conversion::new(&metrics);
        let app = test::init_service(App::new().configure(|config| conversion.routes(config))).await;
        let answer = test::call_service(&app, request.uri("/convert").to_request()).await;
        let status = answer.status().as_u16();
        (status, String::from_utf8(test::read_body(answer).await.to_vec()).unwrap())
    }

    fn posted(kind: &str, body: impl Into<web::Bytes>) -> test::TestRequest {
        test::TestRequest::post().insert_header((header::CONTENT_TYPE, kind)).set_payload(body)
    }

    fn list(count: usize) -> String {
        let env = json!([{"name": "B", "value": "x".repeat(500)}, {"name": "A", "value": "1"}]);
        let task = |n| {
            json!({
                "apiVersion": "task.example.io/v1alpha1", "kind": "Task", "metadata": {"name": format!("task-{n}")},
                "spec": {"env": env},
            })
        };
        let objects: Vec<Value> = (0..count).map(task).collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "1", "desiredAPIVersion": "task.example.io/v1", "objects": objects},
        })
        .to_string()
    }

    #[actix_web::test]
    async fn short_and_long_lists_are_answered() {
        for count in [1, 5000] {
            let (status, body) = asked(posted("application/json; charset=utf-8", list(count))).await;
            let answer: Value = serde_json::from_str(&body).unwrap();
            assert_eq!((status, &answer["response"]["result"]["status"]), (200, &json!("Success")));
            assert_eq!(answer["response"]["convertedObjects"].as_array().unwrap().len(), count);
        }
    }

    #[actix_web::test]
    async fn what_is_no_review_is_rejected() {
        for (request, expected, said) in [
            (posted("text/plain", "{}"), 415, "application/json"),
            (posted("application/json", "{}"), 400, "ConversionReview"),
            (posted("application/json", list(1).split_at(99).0.to_owned()), 400, "ConversionReview"),
            (posted("application/json", vec![b' '; LARGEST + 1]), 413, "67108864 bytes"),
            (test::TestRequest::get(), 405, "405"),
            (test::TestRequest::default().method(Method::PUT), 405, "405"),
        ] {
            let (status, body) = asked(request).await;
            assert!(status == expected && body.contains(said), "{status} {body}");
        }
    }
}
