"""Thirty-three kinds of credentials as they stand in real files, for tests that plant them and look for them afterwards.

None is real. Each is (what it is, a line that holds it, the part that must be nowhere afterwards).
"""

from __future__ import annotations

KINDS: dict[str, tuple[str, str]] = {
    "Hugging Face token": ("login(token='{}')", "hf_QxYzAbCdEfGhIjKlMnOpQrStUv"),
    "W&B key": ("wandb.login(key='{}')", "0123456789abcdef0123456789abcdef01234567"),
    "W&B key of the new form": ("WANDB_API_KEY={}", "wandb_v1_AbCdEfGh0123456789_xyz"),
    "OpenAI key": ("OPENAI_API_KEY={}", "sk-proj-AbCd0123EfGh4567IjKl89"),
    "Anthropic key": ("api_key='{}'", "sk-ant-api03-AbCd0123EfGh4567-xy"),
    "GitHub token": ("git clone https://{}@github.com/o/r.git", "ghp_0aB1cD2eF3gH4iJ5kL6mN7oP8qR9"),
    "GitHub fine-grained token": ("export GH={}", "github_pat_11ABCDEFG0abcdefghij_KLMNOP"),
    "GitLab token": ("curl --header 'PRIVATE-TOKEN: {}' h", "glpat-AbCd0123EfGh4567IjKl"),
    "AWS key id": ("aws_access_key_id = {}", "AKIAIOSFODNN7EXAMPL9"),
    "AWS secret": ("AWS_SECRET_ACCESS_KEY={}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzQ93kd8Vwa"),
    "AWS session token": ("AWS_SESSION_TOKEN={}", "FwoGZXIvYXdzEJr9876543210qwertyABCDEF"),
    "Google API key": ("key={}", "AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"),
    "Slack token": ("slack {}", "xoxb-123456789012-AbCdEfGhIjKl"),
    "PyPI upload token": ("twine upload -p {}", "pypi-AgEIcHlwaS5vcmcCJDAxMjM0NTY3"),
    "npm token": ("//registry/:_authToken={}", "npm_AbCdEf0123456789AbCdEf01234567"),
    "NGC key": ("NGC_API_KEY={}", "nvapi-AbCdEf0123456789_xyzAbCdEf"),
    "RunPod key": ("RUNPOD_API_KEY={}", "rpa_ABCDEF0123456789GHIJKLMNOP"),
    "DigitalOcean token": ("doctl -t {}", "dop_v1_0123456789abcdef0123456789abcdef"),
    "Kaggle key": ('{{"username": "me", "key": "{}"}}', "0f1e2d3c4b5a69788796a5b4c3d2e1f0"),
    "JWT": ("Authorization: Bearer {}", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF123"),
    "bearer of no known form": ("Authorization: Bearer {}", "q1w2e3r4t5y6u7i8o9p0"),
    "basic authorization": ("Authorization: Basic {}", "dXNlcjpzM2NyM3RwYXNz"),
    "password in an address": ("https://me:{}@h.example/simple", "c0rrect-horse-battery"),
    "token in an address": ("https://{}@h.example/simple", "a1b2C3d4E5f6g7h8i9J0k1"),
    "signature in a query": ("https://s3.example/x.whl?X-Amz-Signature={}", "f3c1d9a8b7e6f5d4signature"),
    "token in a query": ("http://h:8888/lab?token={}", "4f5e6d7c8b9a0f1e2d3c4b5a"),
    "database address": ("DATABASE_URL=postgres://app:{}@db.example/prod", "s3cr3tdbpass"),
    "proxy": ("https_proxy=http://me:{}@proxy.example:3128", "pr0xypassw0rd"),
    "Sentry DSN": ("SENTRY_DSN=https://{}@o1.ingest.example/2", "9a8b7c6d5e4f30211203f4e5d6c7b8a9"),
    "Azure account key": ("DefaultEndpointsProtocol=https;AccountKey={}", "Zm9vYmFyYmF6MTIzNDU2Nzg5MA=="),
    "option on a command line": ("python train.py --hub_token {}", "s3cr3t-option-value"),
    "password variable": ("MYSQL_PWD={}", "hunter2hunter2"),
    "private key": ("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"),
}  # fmt: skip


def line_of(kind: str) -> str:
    """Return the line that holds the credential."""
    shape, secret = KINDS[kind]
    return shape.format(secret)


def secret_of(kind: str) -> str:
    return KINDS[kind][1]
