"""One promised figure beside its limit."""


def row_of(what, value, limit, unit, is_least, detail=""):
    holds = value >= limit if is_least else value <= limit
    return {"what": what, "value": value, "limit": limit, "unit": unit, "at": "least" if is_least else "most",
            "holds": holds, "detail": detail}
