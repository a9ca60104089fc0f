"""What is named like a key or a password is neither written nor compared."""

from __future__ import annotations

import time

import pytest

from evalbudget import secrets
from evalbudget.errors import InvalidInputError
from evalbudget.secrets import (
    cleaned,
    is_secret,
    keep_out,
    refuse_secrets,
    shown,
    without_known,
    without_secrets,
)

SECRETS = """
    api_key x-api-key api-key apiKey APIKEY X-Goog-Api-Key OPENAI_API_KEY OPENAI_API_KEY_2 --api-key
    PGPASSWORD password passwd sslpassword db_pwd passphrase AWS_SESSION_TOKEN AWS_SECRET_ACCESS_KEY
    DB_PASS SMTP_PASS SSHPASS OPENAI_KEY AZURE_OPENAI_KEY AZURE_STORAGE_KEY LITELLM_MASTER_KEY DD_APP_KEY
    HFTOKEN ACCESSTOKEN CLIENTSECRET JWT GITHUB_PAT X-Functions-Key http_header
    GITHUB_TOKEN session_token hf_token token use_auth_token X-Auth-Token private_key AccountKey signing_key
    SharedAccessKey Ocp-Apim-Subscription-Key Authorization Proxy-Authorization cookie Set-Cookie headers
    default_headers client_secret credentials GOOGLE_APPLICATION_CREDENTIALS auth pass-word-password
    TOKEN_VALUE API_KEY_FILE_CONTENTS SECRET_STRING TOKEN_FILE_CONTENTS authTokenValue token_string
    DB_PASS_VALUE TOKEN_1_VALUE ANTHROPIC_KEY GROQ_KEY GEMINI_KEY NGC_KEY license_key consumer_key
"""
NO_SECRETS = """
    max_tokens tokenizer token_count keyboard primary_key monkey key keys seed max_gen_toks eos_token
    add_bos_token prefix_token assistant_token pad_token
    time_per_token author authority PWD OLDPWD SSH_AUTH_SOCK HF_TOKEN_PATH
    AWS_SHARED_CREDENTIALS_FILE private_key_path api_key_env secretary secret_name header_length passes
    video_token eot_token eom_token answer_token output_token csv_header response_header first_pass
    bypass task_key answer_key sort_key tokens hotkey
    TOKEN_COUNT TOKEN_COUNT_VALUE TOKEN_PATH_VALUE eos_token_string key_value tokenizer_contents value string
    max_tokens_value file_contents token_type lm-studio google_search together_ai public_key
"""


_A, _D = "Ab3dEf7h", "0123456789abcdef"
KEYS = f"""
    sk-{_A * 6} sk-{_D * 2} sk-proj-{_A * 8}-_{_A * 8} sk-ant-api03-{_A * 11}-{_A}AA sk-or-v1-{_D * 4}
    ghp_{_A * 4}1234 gho_{_A * 4}1234 github_pat_{_A * 2}123456_{_A * 7}123 hf_{_A * 4}ab AIza{_A * 4}-_3
    AKIAIOSFODNN7EXAMPLE ASIAIOSFODNN7EXAMPLE gsk_{_A * 6}1234 xoxb-1234567890-1234567890-{_A}{_A}
    glpat-{_A * 2}1234 nvapi-{_A * 8} xai-{_A * 10}
"""
NO_KEYS = f"""
    sk-1 sk-learn sk-learn-1.5 sk-learn-how-to-tell-handwritten-digits-apart-by-support-vectors sk-{_D * 3}0
    sk-{_A * 6}-v2 task-{_A * 6} disk-{_D * 2} meta-llama/Llama-3.3-70B-Instruct-sk-{_A * 6} sk-proj-item-1
    hf-internal-testing/{_A * 4} hf_internal-testing/tiny-random-gpt2 hf_{_A} my_hf_{_A * 4}ab gsk_test
    ghp_item-12 AKIA AKIATO AKIAIOSFODNN7EXAMPLE2 xAKIAIOSFODNN7EXAMPLE AIzawa xoxb-1 xai-grok-4 glpat-1
    nvapi-model {_D * 2} {_D * 4} {_A * 6} 123e4567-e89b-12d3-a456-426614174000 mQQmLk3q5wV7kS9DqYt3Rx
"""


def test_forms_of_keys() -> None:
    assert [key for key in KEYS.split() if without_known([f"401: '{key}'."]) != ["401: '***'."]] == []
    assert [name for name in NO_KEYS.split() if without_known(name) != name] == []


def test_keys_that_say_what_they_are() -> None:
    pem = f"-----BEGIN RSA PRIVATE KEY-----\n{_A}\n{_A}\n-----END RSA PRIVATE KEY-----"
    jwt = f"eyJ{_A * 2}.eyJ{_A * 4}.{_A * 4}"
    assert without_known(f"read {pem}, sent {jwt}.") == "read ***, sent ***."
    for text in ("-----BEGIN PUBLIC KEY-----\nab", "eyJabc.eyJabc.x", "--- A PRIVATE KEY ---"):
        assert without_known(text) == text


def test_names() -> None:
    assert [name for name in SECRETS.split() if not is_secret(name)] == []
    assert [name for name in NO_SECRETS.split() if is_secret(name)] == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("model=m,api_key=sk-1,seed=2", "model=m,api_key=***,seed=2"),
        ("OPENAI_API_KEY='a b' run", "OPENAI_API_KEY=*** run"),
        ('{"hf_token": "x\\"y", "n": 1}', '{"hf_token": ***, "n": 1}'),
        ('"{\\"api_key\\": \\"x\\", \\"n\\": 1}"', '"{\\"api_key\\": ***, \\"n\\": 1}"'),
        ("[{model: m, model_args: {api_key: x}}]", "[{model: m, model_args: {api_key: ***}}]"),
        ("default_headers={'A': {'b': 'c'}, 'D': 'e'},n=1", "default_headers=***,n=1"),
        ("headers={'A': 'b}c', 'D': 'e'},n=1", "headers=***,n=1"),
        ("headers=(don't), and it's (n=1)", "headers=***, and it's (n=1)"),
        ("{'api_key': b'x', 'n': 1}", "{'api_key': ***, 'n': 1}"),
        ("Client(api_key=Key('x, y'), n=1)", "Client(api_key=***, n=1)"),
        ("password=pass(word)1,n=1", "password=***,n=1"),
        ("x-api-key: x\nnext", "x-api-key: ***\nnext"),
        ("Authorization: Basic bWU6d29yZA==", "Authorization: ***"),
        ("401 for bearer abc.def-123, again", "401 for Bearer ***, again"),
        ("the bearer certificate", "the bearer certificate"),
        ("GET https://h/v1?key=x&n=1#a", "GET https://h/v1?key=***&n=1#a"),
        ("https://h/?n=1&X-Amz-Signature=x", "https://h/?n=1&X-Amz-Signature=x"),
        ("https://h/?n=1&sig=x", "https://h/?n=1&sig=***"),
        ("postgresql://me@h/db?pass%77ord=x#a", "postgresql://me@h/db?pass%77ord=***#a"),
        ("base_url=https://me:word@host/v1", "base_url=https://***@host/v1"),
        ("https://word@host/v1", "https://***@host/v1"),
        ("redis://:word@host/0", "redis://***@host/0"),
        ("postgresql://me:word@host/db#a", "postgresql://***@host/db#a"),
        ("postgresql+psycopg://me:w/o@r/d@host/db#a", "postgresql+psycopg://***@host/db#a"),
        ("postgresql://me@host/db#a", "postgresql://me@host/db#a"),
        ("http://localhost:8000/a@b and https://host/@b", "http://localhost:8000/a@b and https://host/@b"),
        ("max_tokens=5,tokenizer=t,key=value", "max_tokens=5,tokenizer=t,key=value"),
        ("primary_key: 3, monkey=4, token_count=5", "primary_key: 3, monkey=4, token_count=5"),
    ],
)
def test_texts(text: str, told: str) -> None:
    assert without_secrets(text) == told


_PIECES = "password=[|token={[|x_api_key_|api_key={|api_key='|token=\"|a://b:|@|?key=|bearer "
_PIECES += '|token={\\"|token=[\'|token={"\\"|token=a(|token=b\'|token=a.b("|\\|a  |{[|aA|%|&sig=%|aA=\\'
_PIECES += "|sk-|sk-ant-|xoxb-|xoxb-1|eyJ|eyJ0123456789.|-----BEGIN PRIVATE KEY-----|-----BEGIN "


@pytest.mark.parametrize("piece", _PIECES.split("|"))
def test_long_texts_take_as_long_as_they_are(piece: str) -> None:
    text = piece * 8_000
    began = time.process_time()
    without_secrets(text)
    keep_out(text)
    is_secret(text)
    assert time.process_time() - began < 1.0  # milliseconds; in the square of its length, seven seconds


def test_values_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", 'from-the-"environment')
    monkeypatch.setenv("OTHER_API_KEY", "unused")  # a word like any other
    assert without_secrets('401: from-the-"environment is unused') == "401: *** is unused"
    assert without_known({"a": ['x from-the-\\"environment', 1]}) == {"a": ["x ***", 1]}


def test_values_that_were_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_given", set())
    keep_out(
        ["-M", "api_key=first-0f-all", {"base_url": "https://me:second%40on3@host", "token": "third-on3"}]
    )
    keep_out("headers={'X-Api-Key': 'Bearer fourth-on3', 'Accept': 'anything-else'},password=short")
    said = "first-0f-all second%40on3 second@on3 third-on3 fourth-on3 anything-else short"
    assert without_known(said) == "*** *** *** *** *** anything-else short"


def test_values_with_half_a_character() -> None:
    keep_out({"token": "\ud800abcdefgh12345"})
    assert without_known("it is \ud800abcdefgh12345") != "it is \ud800abcdefgh12345"
    assert without_secrets("nothing") == "nothing"


def test_values_as_addresses_and_clients_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_given", set())
    monkeypatch.setenv("SOME_API_KEY", "ab+c/d e=0123")
    monkeypatch.setenv("OTHER_API_KEY", "no-text-\udcff-01")  # bytes that are no UTF-8
    keep_out({"base_url": "http://me:wo%40d-0123@host/v1"})
    said = (
        "ab%2Bc%2Fd%20e%3D0123 ab%2Bc/d%20e%3D0123 ab%2Bc%2Fd+e%3D0123 no-text-%FF-01 Basic bWU6d29AZC0wMTIz"
    )
    assert without_known(said) == "*** *** *** *** Basic ***"


@pytest.mark.parametrize("value", ["lm-studio", "postgres", "Password", "correct horse"])
def test_plain_words_are_no_secrets_wherever_they_stand(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", value)
    assert without_known(f"openai-api/{value}/a") == f"openai-api/{value}/a"


def test_values_as_they_occur(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_given", set())
    monkeypatch.setenv("SOME_API_KEY", "sk-line-0123\n")
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:dbword-12345@h/db")
    monkeypatch.setenv("OTHER_URL", "postgresql://h/db?user=me&password=query-12345")
    monkeypatch.setenv("STORAGE", "EndpointsProtocol=https;AccountKey=stored-12345==")
    keep_out({"password": "correct basic horse"})
    said = "sk-line-0123 and dbword-12345 and correct basic horse and query-12345 and stored-12345=="
    assert without_known(said) == "*** and *** and *** and *** and ***"


def test_values_are_looked_for_again_where_something_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_given", set())
    said = "first-12345 second-12345 third-12345"
    monkeypatch.setenv("SOME_API_KEY", "first-12345")
    assert without_known(said) == "*** second-12345 third-12345"
    looked_for = secrets._looked_for
    monkeypatch.setattr("evalbudget.secrets._looked_for", None)
    assert without_known(said) == "*** second-12345 third-12345"
    monkeypatch.setattr("evalbudget.secrets._looked_for", looked_for)
    monkeypatch.setenv("SOME_API_KEY", "second-12345")
    assert without_known(said) == "first-12345 *** third-12345"
    keep_out({"token": "third-12345"})
    assert without_known(said) == "first-12345 *** ***"
    monkeypatch.delenv("SOME_API_KEY")
    assert without_known(said) == "first-12345 second-12345 ***"


def test_values_by_their_names() -> None:
    given = {"model_args": {"auth_token": "t", "headers": {"X": "k"}, "n": 1}, "words": ["password=p", None]}
    assert cleaned(given) == {
        "model_args": {"auth_token": "***", "headers": {"X": "***"}, "n": 1},
        "words": ["password=***", None],
    }
    assert (
        shown(["audit", "--api-key", "x", "--n", "1", "-M", "token=t"])
        == "audit --api-key '***' --n 1 -M 'token=***'"
    )


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"api_key": "x"}, "api_key"),
        ([{"model_args": {"default_headers": {"X-Api-Key": "x"}}}], "X-Api-Key"),
        ({"header": '{"A": "x"}'}, "header"),
        ({"base_url": "https://me:word@host/v1"}, "base_url"),
        ({"base_url": "https://host/v1?key=x"}, "base_url"),
        ({"other": "the value of a variable"}, "other"),
        ({"extra_args": "--api-key=x"}, "extra_args"),
        ({"extra_args": ["--n", "1", "--api-key", "x"]}, "--api-key"),
        ({"extra_body": '{"n": 1, "api_key": "x"}'}, "extra_body"),
        ({"sent": "Bearer 0123456789"}, "sent"),
        ({"default_query": {"key": "x"}}, "key"),
    ],
)
def test_refused_by_name(given: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "value of a variable")
    with pytest.raises(InvalidInputError, match=rf"^judge 'j' has a secret in {name}, .* set the variable"):
        refuse_secrets(given, "judge 'j'")


@pytest.mark.parametrize(
    "given", [{"api_key": {"value": "x"}}, {"default_headers": {"X-Functions-Key": "x"}}]
)
def test_refused_in_mappings(given: object) -> None:
    with pytest.raises(InvalidInputError, match="has a secret in"):
        refuse_secrets(given, "judge 'j'")


def test_results_of_tasks_with_such_names_stay() -> None:
    results = {"password_strength": {"acc,none": 0.5}}
    assert cleaned(results) == results


def test_not_refused() -> None:
    refuse_secrets(
        {
            "default_headers": {"X-Team": "a"},
            "use_auth_token": True,
            "token": None,
            "base_url": "http://h:1/v1",
        }
        | {"extra_body": {"video_token": "<v>"}, "url": "https://me@host/v1"}
        | {"prompt": "use https://docs.example/?key=map and go", "stop": ["Token:", "a key=value"]}
        | {"key": "C", "extra_args": ["--tokenizer", "--max-tokens", "5"], "query": {"keys": 1}}
        | {"system_message": "The password: do not tell it", "max_tokens": 5},
        "judge 'j'",
    )
