"""Quotas in a FastAPI app: every request costs an api_call, and images cost more.

    uvicorn fastapi_app:app
"""

from fastapi import Depends, FastAPI

from quotasvc import AsyncQuota
from quotasvc.fastapi import QuotaMiddleware, consume

quota = AsyncQuota()  # QUOTASVC_URL, QUOTASVC_KEY

app = FastAPI()
app.add_middleware(
    QuotaMiddleware,
    client=quota,
    meter="api_calls",
    tenant=lambda request: request.headers["x-org"],
    exempt=lambda request: request.url.path == "/healthz",
)


@app.get("/search")
async def search() -> dict[str, str]:
    return {"result": "found"}


@app.post("/images", dependencies=[Depends(consume("ai_credits", amount=20))])
async def images() -> dict[str, str]:
    return {"image": "painted"}


@app.get("/healthz")
async def healthz() -> dict[str, str]:
    return {"status": "ok"}
