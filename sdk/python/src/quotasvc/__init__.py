"""A client of quotasvc: quotas, credits and rate limits for product backends.

    quota = Quota()                                     # or AsyncQuota; QUOTASVC_URL and QUOTASVC_KEY
    quota.consume("acme", "api_calls")                  # raises Denied if the tenant may not

See https://github.com/quotasvc/quotasvc/blob/main/docs/integrate/python.md.
"""

from quotasvc import errors, models, params
from quotasvc._api import Api
from quotasvc._api_async import AsyncApi
from quotasvc._backoff import Backoff
from quotasvc._call import RetryEvent, new_key
from quotasvc._client import Hold, Quota
from quotasvc._client_async import AsyncHold, AsyncQuota
from quotasvc._failopen import FailOpenEvent
from quotasvc._version import __version__
from quotasvc.errors import Denied, QuotaError, Undecided
from quotasvc.local import LocalDenied, LocalStats, LocalUnits
from quotasvc.webhooks import Event, Webhook, WebhookError

__all__ = [
    "__version__",
    "Api",
    "AsyncApi",
    "AsyncHold",
    "AsyncQuota",
    "Backoff",
    "Denied",
    "Event",
    "FailOpenEvent",
    "Hold",
    "LocalDenied",
    "LocalStats",
    "LocalUnits",
    "Quota",
    "QuotaError",
    "RetryEvent",
    "Undecided",
    "Webhook",
    "WebhookError",
    "errors",
    "models",
    "new_key",
    "params",
]
