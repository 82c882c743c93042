// The API's description, shown by the Swagger UI of our own origin.
"use strict";
(() => {
  const place = document.getElementById("swagger");
  SwaggerUIBundle({ url: place.dataset.openapi, domNode: place, deepLinking: false, validatorUrl: null, defaultModelsExpandDepth: 0 });
})();
