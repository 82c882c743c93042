"""What the servers of object stores answer, as their clients report it, in words."""

from __future__ import annotations

import pytest

from afresh.tables.object_errors import explain, refusal_of

# As obstore and pyarrow report the answers of S3, MinIO, Ceph and file systems.
MINIO_TO_OBSTORE = """Generic S3 error: Error performing PUT http://10.0.0.7:9000/b/0e/0e5751c026e543b2ae8ab2eb06.zst
in 383.16662ms, after 3 retries, max_retries: 3, retry_timeout: 30s  - Server returned non-2xx status code:
507 Insufficient Storage: <?xml version='1.0'?><Error><Code>XMinioStorageFull</Code>
<Message>Delete some objects.</Message></Error>

Debug source:
Generic { store: "S3", source: RetryError(RetryErrorImpl { status: 507 }) }"""
MINIO_TO_PYARROW = """When initiating multiple part upload for key 'part-0.parquet' in bucket 'b': AWS Error
UNKNOWN (HTTP status 507) during CreateMultipartUpload operation: Unable to parse ExceptionName:
XMinioStorageFull Message: Delete some objects."""
FULL = [
    MINIO_TO_OBSTORE,
    MINIO_TO_PYARROW,
    "Server returned non-2xx status code: 403 Forbidden: <Error><Code>QuotaExceeded</Code></Error>",
    "LocalFileSystem error: Disk quota exceeded (os error 122)",
    "[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device",
]
DENIED = [
    "When getting information for key 'items': AWS Error ACCESS_DENIED during HeadObject: No response body.",
    "Server returned non-2xx status code: 403 Forbidden: <Error><Code>InvalidAccessKeyId</Code></Error>",
    "[Errno 13] Failed to open local file '/srv/x'. Detail: [errno 13] Permission denied",
]
WORDS = "no space is left: XMinioStorageFull: Delete some objects."
OTHERS = [
    "Error performing PUT http://10.0.0.7:507/quota/status-507.zst in 507.5ms: Connection refused",
    "AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 7, Could not connect to server",
]


@pytest.mark.parametrize("text", FULL)
def test_a_full_store_is_named(text: str) -> None:
    assert refusal_of(OSError(text)) == "no space is left"


@pytest.mark.parametrize("text", DENIED)
def test_denied_access_is_named(text: str) -> None:
    assert refusal_of(OSError(text)) == "access is denied"


@pytest.mark.parametrize("text", OTHERS)
def test_other_errors_stay_as_they_are(text: str) -> None:
    assert refusal_of(OSError(text)) is None
    assert explain(OSError(text)) == text


def test_the_answer_of_the_server_is_not_cut_off() -> None:
    assert explain(OSError(MINIO_TO_OBSTORE)) == explain(OSError(MINIO_TO_PYARROW)) == WORDS
