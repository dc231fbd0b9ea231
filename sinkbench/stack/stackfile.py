"""The stack file: somebody's own clusters, their addresses and how to get in.

It is YAML, read as strictly as a plan. A secret is never in it: it says which environment variable, or which file,
holds it. Relative paths are relative to the stack file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from sinkbench.errors import StackError
from sinkbench.secrets import redacted
from sinkbench.stack import Access, Endpoints
from sinkbench.stack.stackvalues import (
    address,
    ca_file,
    console_dsn,
    dsn,
    hide_misplaced,
    kafka_settings,
    secret,
    several,
    variables,
    with_password,
)
from sinkbench.yamlfile import YamlFile, mistake

__all__ = ["StackFile", "load_stack_file"]

Secret = Annotated[str, BeforeValidator(secret)]
Url = Annotated[str, AfterValidator(address)]
CaFile = Annotated[Path, BeforeValidator(ca_file)]
Dsn = Annotated[str, BeforeValidator(dsn)]
ConsoleDsn = Annotated[str, BeforeValidator(console_dsn)]
Settings = Annotated[dict[str, str], BeforeValidator(kafka_settings)]
Variables = Annotated[dict[str, str], BeforeValidator(variables)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _is_a_mapping(cls, value: object) -> object:
        # A text in its place may be an address with a password in it: it is not shown.
        if not isinstance(value, dict):
            raise mistake("{name} must be a mapping of keys to values")
        return value


class Kafka(_Section):
    """The brokers, and what librdkafka needs to get in."""

    bootstrap: str = Field(min_length=1, description="host:port of one or several brokers, separated by commas")
    settings: Settings = Field(default_factory=dict, description="librdkafka's settings for SASL and TLS", repr=False)


class _Http(_Section):
    user: str | None = None
    password: Secret | None = Field(default=None, repr=False)
    ca: CaFile | None = Field(default=None, description="certificates (PEM) that sign the service's own")

    @model_validator(mode="after")
    def _user_has_password(self) -> Self:
        for one, other in (("user", "password"), ("password", "user")):
            if getattr(self, one) is not None and getattr(self, other) is None:
                raise mistake(f"{{name}} has '{one}' and no '{other}'; give both or neither", one)
        return self


class Connect(_Http):
    """The workers' REST interface."""

    urls: Annotated[tuple[Url, ...], Field(strict=False, min_length=1), BeforeValidator(several)]
    workers: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        default=None, description="number of workers (default: of urls); Connect does not tell"
    )
    metrics: Annotated[tuple[Url, ...], Field(strict=False), BeforeValidator(several)] = Field(
        default=(), description="each worker's metrics: the Prometheus JMX exporter with connect/metrics.yaml"
    )
    variables: Variables = Field(
        default_factory=dict, description="what ${env:NAME} in a connector file stands for", repr=False
    )

    @model_validator(mode="after")
    def _urls_are_distinct(self) -> Self:
        for index, url in enumerate(self.urls):
            if url in self.urls[:index]:
                raise mistake(f"urls lists {url} twice; give 'workers' to say how many there are", "urls", index)
        return self


class Elasticsearch(_Http):
    """The cluster that the connectors write to."""

    url: Url
    index: str = Field(
        default="tides", pattern=r"^[a-z0-9][a-z0-9._-]*$", description="the alias that connectors write to"
    )
    api_key: Secret | None = Field(default=None, repr=False)

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        if self.api_key is not None and self.user is not None:
            raise mistake("{name} has both 'user' and 'api_key'; give one of them", "api_key")
        return self


class Postgres(_Section):
    """The database, straight, as the controller reaches it."""

    dsn: Dsn = Field(repr=False)
    password: Secret | None = Field(default=None, repr=False)


class PgBouncer(_Section):
    """PgBouncer's own console, where its pools are counted."""

    dsn: ConsoleDsn = Field(repr=False)
    password: Secret | None = Field(default=None, repr=False)


class StackFile(_Section):
    """A whole stack file; `load_stack_file` makes one."""

    kafka: Kafka
    connect: Connect
    elasticsearch: Elasticsearch | None = None
    postgres: Postgres | None = None
    pgbouncer: PgBouncer | None = None
    loadgens: Annotated[tuple[Url, ...], Field(strict=False), BeforeValidator(several)] = ()

    _source: YamlFile = PrivateAttr()

    def where(self, *path: str | int) -> str:
        """`file:line` of a key or list item."""
        return self._source.where(*path)

    @property
    def path(self) -> Path:
        """The file itself."""
        return self._source.path

    @property
    def workers(self) -> int:
        """Number of Connect workers."""
        return self.connect.workers or len(self.connect.urls)

    def endpoints(self) -> Endpoints:
        """How to reach each service. Worker ids are not in the file, so Connect's own (host:port) stand for them."""
        connect, elasticsearch, postgres, pgbouncer = self.connect, self.elasticsearch, self.postgres, self.pgbouncer
        # What the workers' own environment may say of the index would be another one than the one that is watched.
        index = {} if elasticsearch is None else {"ELASTICSEARCH_INDEX": elasticsearch.index}
        return Endpoints(
            kafka=self.kafka.bootstrap,
            connect={f"connect-{number}": url for number, url in enumerate(connect.urls, start=1)},
            worker_ids={},
            elasticsearch=None if elasticsearch is None else elasticsearch.url,
            elasticsearch_index="tides" if elasticsearch is None else elasticsearch.index,
            postgres=None if postgres is None else with_password(postgres.dsn, postgres.password),
            pgbouncer_admin=None if pgbouncer is None else with_password(pgbouncer.dsn, pgbouncer.password),
            kafka_settings=self.kafka.settings,
            connect_access=Access(user=connect.user, password=connect.password, ca=connect.ca),
            elasticsearch_access=Access()
            if elasticsearch is None
            else Access(elasticsearch.user, elasticsearch.password, elasticsearch.api_key, elasticsearch.ca),
            connect_metrics={f"connect-{number}": url for number, url in enumerate(connect.metrics, start=1)},
            connect_variables={**index, **connect.variables},
            loadgens={f"loadgen-{number}": url for number, url in enumerate(self.loadgens, start=1)},
            shared=True,
            stack_file=self.path,
        )


def load_stack_file(path: Path) -> StackFile:
    """Reads the stack file `path` and the secrets that it points to, which are concealed from then on.

    Raises StackError with a line for each mistake, up to five: the file, the line, what was found, and what to do.
    """
    source = YamlFile(path, "stack file", StackError)
    hide_misplaced(source.content)
    try:
        file = StackFile.model_validate(source.content, context={"folder": path.absolute().parent})
    except ValidationError as invalid:
        models: dict[str, type[BaseModel]] = {
            "": StackFile,
            "kafka": Kafka,
            "connect": Connect,
            "elasticsearch": Elasticsearch,
            "postgres": Postgres,
            "pgbouncer": PgBouncer,
        }
        raise StackError(redacted(source.explain(invalid, models))) from None
    file._source = source
    return file
