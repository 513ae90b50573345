//! Bodies of requests, read with bounds: so many bytes for one, so many for all
//! that are under way, and a deadline.
//!
//! A body takes its share of the whole as it comes in, not as it is announced:
//! who wants to use the memory up has to send it. One that finds nothing left
//! waits for others to end until its deadline.

use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::{StatusCode, header};
use actix_web::web::{BytesMut, Payload};
use futures::StreamExt;
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How many bytes a permit stands for.
const UNIT: usize = 1024;

/// Takes bodies in. Clones share what there is for all of them.
#[derive(Clone, Debug)]
pub(super) struct Intake {
    limit: usize,
    deadline: Duration,
    left: Arc<Semaphore>,
}

/// A body, and its share of the memory for all, which is given back when it is dropped.
#[derive(Debug)]
pub(super) struct Body {
    pub bytes: BytesMut,
    shares: Option<OwnedSemaphorePermit>,
}

/// Why a body was not taken in.
#[derive(Debug, Error)]
pub(super) enum Refused {
    #[error("the content type must be application/json")]
    ContentType,
    #[error("the body must be at most {0} bytes")]
    TooLarge(usize),
    #[error("the body did not come in within {} s", .0.as_secs())]
    TooSlow(Duration),
    #[error("there was no memory left for the body within {} s", .0.as_secs())]
    NoMemory(Duration),
    #[error("the body ended early: {0}")]
    Broken(actix_web::error::PayloadError),
}

impl Refused {
    /// The status of the answer.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::NoMemory(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }
}

impl Intake {
    /// Bodies of at most `limit` bytes, of at most `together` at once, each within `deadline`.
    pub(super) fn new(limit: usize, together: usize, deadline: Duration) -> Self {
        Self { limit, deadline, left: Arc::new(Semaphore::new(together / UNIT)) }
    }

    /// The body of a request, which must be JSON.
    pub(super) async fn json(&self, request: &HttpRequest, mut payload: Payload) -> Result<Body, Refused> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            return Err(Refused::ContentType);
        }
        let announced =
            request.headers().get(header::CONTENT_LENGTH).and_then(|n| n.to_str().ok()?.parse().ok());
        if announced.is_some_and(|announced: usize| announced > self.limit) {
            return Err(Refused::TooLarge(self.limit));
        }
        let deadline = Instant::now() + self.deadline;
        let mut body = Body { bytes: BytesMut::new(), shares: None };
        loop {
            let next = tokio::time::timeout_at(deadline, payload.next()).await;
            let chunk = match next.map_err(|_| Refused::TooSlow(self.deadline))? {
                None => return Ok(body),
                Some(chunk) => chunk.map_err(Refused::Broken)?,
            };
            if body.bytes.len() + chunk.len() > self.limit {
                return Err(Refused::TooLarge(self.limit));
            }
            let more = tokio::time::timeout_at(deadline, self.grow(&mut body, chunk.len())).await;
            more.map_err(|_| Refused::NoMemory(self.deadline))?;
            body.bytes.extend_from_slice(&chunk);
        }
    }

    /// Waits until there is a share for so many bytes more.
    async fn grow(&self, body: &mut Body, more: usize) {
        let has = body.shares.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = (body.bytes.len() + more).div_ceil(UNIT).saturating_sub(has);
        let Ok(missing) = u32::try_from(missing) else { return };
        // The semaphore is never closed.
        if let Ok(permit) = self.left.clone().acquire_many_owned(missing).await {
            match &mut body.shares {
                Some(shares) => shares.merge(permit),
                None => body.shares = Some(permit),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use actix_web::dev::Payload as Stream;
    use actix_web::error::PayloadError;
    use actix_web::web::Bytes;
    use actix_web::{FromRequest, test};
    use futures::stream;

    use super::*;

    fn request() -> HttpRequest {
        test::TestRequest::post().insert_header(("content-type", "application/json")).to_http_request()
    }

    /// Chunks of a body, after which nothing comes, not even the end.
    async fn endless(chunks: Vec<Vec<u8>>) -> Payload {
        let mut chunks = chunks.into_iter();
        let stream = stream::poll_fn(move |_| match chunks.next() {
            Some(chunk) => Poll::Ready(Some(Ok::<_, PayloadError>(Bytes::from(chunk)))),
            None => Poll::Pending,
        });
        Payload::from_request(&request(), &mut Stream::Stream { payload: Box::pin(stream) }).await.unwrap()
    }

    async fn whole(body: Vec<u8>) -> Payload {
        let stream = stream::iter([Ok::<_, PayloadError>(Bytes::from(body))]);
        Payload::from_request(&request(), &mut Stream::Stream { payload: Box::pin(stream) }).await.unwrap()
    }

    #[actix_web::test]
    async fn a_body_that_does_not_end_has_a_deadline_and_gives_its_memory_back() {
        let intake = Intake::new(4096, 4096, Duration::from_millis(50));
        let slow = intake.json(&request(), endless(vec![vec![b' '; 4096]]).await).await;
        assert!(matches!(slow, Err(Refused::TooSlow(_))), "{slow:?}");
        let body = intake.json(&request(), whole(vec![b' '; 4096]).await).await.unwrap();
        assert_eq!(body.bytes.len(), 4096);
    }

    #[actix_web::test]
    async fn a_body_for_which_no_memory_is_left_waits_for_another_to_end() {
        let intake = Intake::new(4096, 4096, Duration::from_millis(50));
        let first = intake.json(&request(), whole(vec![b' '; 3000]).await).await.unwrap();
        let second = intake.json(&request(), whole(vec![b' '; 3000]).await).await;
        assert!(matches!(second, Err(Refused::NoMemory(_))), "{second:?}");
        let intake = Intake { deadline: Duration::from_secs(20), ..intake };
        let (request, payload) = (request(), whole(vec![b' '; 3000]).await);
        let waits = intake.json(&request, payload);
        let (second, ()) = tokio::join!(waits, async move { drop(first) });
        assert_eq!(second.unwrap().bytes.len(), 3000);
    }

    #[actix_web::test]
    async fn a_body_that_is_too_long_is_refused_whether_it_says_so_or_not() {
        let intake = Intake::new(4096, 1 << 20, Duration::from_secs(20));
        let long = intake.json(&request(), endless(vec![vec![b' '; 4096], vec![b' ']]).await).await;
        assert!(matches!(long, Err(Refused::TooLarge(4096))), "{long:?}");
        let said = test::TestRequest::post()
            .insert_header(("content-type", "application/json"))
            .insert_header(("content-length", "4097"))
            .to_http_request();
        let long = intake.json(&said, endless(vec![]).await).await;
        assert!(matches!(long, Err(Refused::TooLarge(4096))), "{long:?}");
    }
}
