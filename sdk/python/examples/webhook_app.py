"""A receiver of webhooks. QUOTASVC_WEBHOOK_SECRET is what POST /v1/webhooks showed once.

    uvicorn webhook_app:app
"""

import os

from fastapi import FastAPI, HTTPException, Request

from quotasvc import Webhook, WebhookError

webhook = Webhook(os.environ["QUOTASVC_WEBHOOK_SECRET"])
seen: set[str] = set()  # a table of your database: deliveries are repeated, also after a restart

app = FastAPI()


@app.post("/quotasvc", status_code=204)
async def receive(request: Request) -> None:
    try:
        event = webhook.verify(await request.body(), request.headers)
    except WebhookError as error:
        raise HTTPException(400, str(error)) from error
    if event.id in seen:
        return
    if event.type == "balance.threshold_reached":
        print(f"tell {event.data.get('tenant')}: {event.data.get('threshold')} % used")
    seen.add(event.id)
